-- The elite of another campaign of the group that a candidate was taken from: shared lineage of several targets.
ALTER TABLE candidate ADD COLUMN origin TEXT;

CREATE INDEX candidate_migrant ON candidate (campaign, ordinal) WHERE operator = 'migrate';
