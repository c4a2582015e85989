-- What belongs to comparing runs and to doing them again.
--
-- runs      a note and a star of the user's.
-- recipes   how a run was made: profile, code, packages, machines. One body of
--           JSON for each run, in a table of its own: it may be long, and lists
--           of runs do without it.
-- series    a series may come from several places: the output of a rank
--           (source stdout, format log) and files that the training wrote.
--           Each has its own row and points; which of them is shown is decided
--           when they are read. edition grows when points are taken back, as of
--           a file that was written anew.
--
-- SQLite can't change a UNIQUE constraint, so series and points are made anew.

ALTER TABLE runs ADD COLUMN note    TEXT    NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN starred INTEGER NOT NULL DEFAULT 0;

CREATE TABLE recipes (
  run  TEXT PRIMARY KEY REFERENCES runs (id),
  body BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE series_3 (
  id      INTEGER PRIMARY KEY,
  run     TEXT    NOT NULL REFERENCES runs (id),
  name    TEXT    NOT NULL,
  source  TEXT    NOT NULL DEFAULT 'stdout',
  format  TEXT    NOT NULL DEFAULT 'log',
  edition INTEGER NOT NULL DEFAULT 0,
  UNIQUE (run, name, source)
);
INSERT INTO series_3 (id, run, name) SELECT id, run, name FROM series;

CREATE TABLE points_3 (
  series  INTEGER NOT NULL REFERENCES series_3 (id),
  ordinal INTEGER NOT NULL,
  step    INTEGER,
  epoch   REAL,
  time    INTEGER NOT NULL,
  value   REAL,
  PRIMARY KEY (series, ordinal)
) WITHOUT ROWID;
INSERT INTO points_3 SELECT series, ordinal, step, epoch, time, value FROM points;

DROP TABLE points;
DROP TABLE series;
ALTER TABLE series_3 RENAME TO series;
ALTER TABLE points_3 RENAME TO points;
