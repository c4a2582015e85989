-- Runs can be removed.
--
-- runs      removed_at is set before anything of a run is removed: from then on
--           no list has it. What an rm that was killed left is found by it and
--           removed by the next one.

ALTER TABLE runs ADD COLUMN removed_at INTEGER;
