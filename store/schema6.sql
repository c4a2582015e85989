-- A point keeps by what its line placed it, and a series whether any point fell
-- back behind the one before it: then what a resumed run repeats is replaced
-- when it is read.
--
-- points    x: 1 by nothing, 2 by its epoch, 3 by a step of its epoch counted
--           through the run, 4 by its step; NULL where that was not kept.
-- series    falls: 1 when a point fell back.

ALTER TABLE points ADD COLUMN x INTEGER;
ALTER TABLE series ADD COLUMN falls INTEGER NOT NULL DEFAULT 0;
UPDATE series SET falls = EXISTS (
  SELECT 1 FROM points a JOIN points b ON b.series = a.series AND b.ordinal = a.ordinal + 1
  WHERE a.series = series.id AND coalesce(b.step < a.step, b.epoch < a.epoch));
