-- What a template declares, and which point of a template's space a candidate is.
ALTER TABLE candidate ADD COLUMN space TEXT;
ALTER TABLE candidate ADD COLUMN point TEXT NOT NULL DEFAULT '';

CREATE INDEX candidate_tuning ON candidate (campaign, ordinal) WHERE operator = 'tune' OR space IS NOT NULL;
