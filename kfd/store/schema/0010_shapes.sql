-- Digest of a candidate's source without the names of its variables: equal ones are near-duplicates.
ALTER TABLE candidate ADD COLUMN shape TEXT NOT NULL DEFAULT '';
