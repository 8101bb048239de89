-- What the search decided about a candidate, and what it was told of it, in which order: rows that restore the search.
-- Candidates of older files were asked and told before this was kept: they teach a restarted search nothing.
ALTER TABLE candidate ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
ALTER TABLE candidate ADD COLUMN asked_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE candidate ADD COLUMN asked_model TEXT NOT NULL DEFAULT 'default';
ALTER TABLE candidate ADD COLUMN variant TEXT NOT NULL DEFAULT '';
ALTER TABLE candidate ADD COLUMN strategy TEXT NOT NULL DEFAULT '';
ALTER TABLE candidate ADD COLUMN reaction TEXT NOT NULL DEFAULT '';
ALTER TABLE candidate ADD COLUMN island INTEGER NOT NULL DEFAULT 0;
ALTER TABLE candidate ADD COLUMN hints TEXT NOT NULL DEFAULT '';
ALTER TABLE candidate ADD COLUMN parent_cell TEXT NOT NULL DEFAULT '0,0,0';
ALTER TABLE candidate ADD COLUMN parent_fitness REAL NOT NULL DEFAULT 0;
ALTER TABLE candidate ADD COLUMN told INTEGER CHECK (told > 0);
ALTER TABLE candidate ADD COLUMN told_fitness REAL;
ALTER TABLE candidate ADD COLUMN kept INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1));
ALTER TABLE candidate ADD COLUMN best INTEGER NOT NULL DEFAULT 0 CHECK (best IN (0, 1));
