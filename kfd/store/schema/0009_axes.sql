-- Levels of a candidate on further axes of the archive.
ALTER TABLE candidate ADD COLUMN extra TEXT NOT NULL DEFAULT '';
