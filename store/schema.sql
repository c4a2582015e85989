-- The memory of dlwb: one SQLite file, written by every dlwb of a user, often
-- by several at once (WAL, synchronous=FULL, one writer at a time).
--
-- clusters  one row per LIFE of a cluster. A name may be used again after its
--           cluster is gone; each life has an id of its own, and runs, ledger
--           entries, events and samples belong to a life, never to a name. At
--           most one life of a name has not ended.
-- ledger    the durable record of every paid resource: the intent, with a
--           token of our own, is committed before the call that makes the
--           resource; the id the provider gave comes after. closed_at is set
--           only with a proof. An entry without closed_at may still cost money.
-- runs      one row per launch of a training command. Kept for ever.
-- series    the metrics of a run, numbered so that points stay small.
-- points    the values of a series; ordinal counts them from 0 and makes adding
--           the same points again harmless.
-- samples   telemetry: one body per node and moment. An id is never used again,
--           so that a reader who follows by id misses nothing after a trim.
-- events    what happened, in order. seq grows with every event of every
--           process; an event is never seen before one with a smaller seq.
-- profiles  profile files that were used; hash is that of the trusted content.
--
-- Times are Unix nanoseconds in UTC, 0 for the zero time; NULL where there is
-- none yet. data, body and receipt hold JSON of whoever wrote it; nothing here
-- looks inside. points.value is NULL for NaN, which SQLite can't hold;
-- infinities are kept as they are.
--
-- This is migration 1. It never changes: later schemas are later migrations.

CREATE TABLE clusters (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  name           TEXT    NOT NULL,
  provider       TEXT    NOT NULL,
  phase          TEXT    NOT NULL,
  profile        TEXT    NOT NULL,
  profile_path   TEXT    NOT NULL,
  profile_source TEXT    NOT NULL,
  data           BLOB,
  created_at     INTEGER NOT NULL,
  ended_at       INTEGER,
  price_per_hour REAL    NOT NULL,
  receipt        BLOB
);
CREATE INDEX clusters_by_name ON clusters (name, id);
CREATE UNIQUE INDEX clusters_one_life_at_a_time ON clusters (name) WHERE ended_at IS NULL;

CREATE TABLE ledger (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  life        INTEGER NOT NULL REFERENCES clusters (id),
  kind        TEXT    NOT NULL,
  token       TEXT    NOT NULL,
  intent_at   INTEGER NOT NULL,
  resource_id TEXT    NOT NULL DEFAULT '',
  state       TEXT    NOT NULL,
  proof       TEXT    NOT NULL DEFAULT '',
  resolved_at INTEGER,
  closed_at   INTEGER,
  UNIQUE (kind, token)
);
CREATE INDEX ledger_by_life ON ledger (life, id);
CREATE INDEX ledger_open ON ledger (id) WHERE closed_at IS NULL;

CREATE TABLE runs (
  id         TEXT    PRIMARY KEY,
  life       INTEGER NOT NULL REFERENCES clusters (id),
  profile    TEXT    NOT NULL,
  engine     TEXT    NOT NULL,
  command    TEXT    NOT NULL,
  world_size INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at   INTEGER,
  exit_code  INTEGER,
  verdict    TEXT    NOT NULL,
  cause      TEXT    NOT NULL,
  dir        TEXT    NOT NULL,
  data       BLOB
);
CREATE INDEX runs_by_life ON runs (life, started_at);
CREATE INDEX runs_by_time ON runs (started_at);

CREATE TABLE series (
  id   INTEGER PRIMARY KEY,
  run  TEXT NOT NULL REFERENCES runs (id),
  name TEXT NOT NULL,
  UNIQUE (run, name)
);

CREATE TABLE points (
  series  INTEGER NOT NULL REFERENCES series (id),
  ordinal INTEGER NOT NULL,
  step    INTEGER,
  epoch   REAL,
  time    INTEGER NOT NULL,
  value   REAL,
  PRIMARY KEY (series, ordinal)
) WITHOUT ROWID;

CREATE TABLE samples (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  life INTEGER NOT NULL REFERENCES clusters (id),
  node INTEGER NOT NULL,
  time INTEGER NOT NULL,
  body BLOB    NOT NULL
);
CREATE INDEX samples_by_node ON samples (life, node, time);

CREATE TABLE events (
  seq  INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  life INTEGER NOT NULL REFERENCES clusters (id),
  run  TEXT    NOT NULL,
  name TEXT    NOT NULL,
  body BLOB    NOT NULL
);
CREATE INDEX events_by_life ON events (life, seq);
CREATE INDEX events_by_run ON events (run, seq) WHERE run <> '';

CREATE TABLE profiles (
  path     TEXT    PRIMARY KEY,
  name     TEXT    NOT NULL,
  provider TEXT    NOT NULL,
  hash     TEXT    NOT NULL,
  used_at  INTEGER NOT NULL
) WITHOUT ROWID;
