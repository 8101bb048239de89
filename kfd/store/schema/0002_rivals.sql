-- Whom a candidate is measured against before it displaces anything, and how often it has been.
ALTER TABLE candidate ADD COLUMN rival INTEGER;
ALTER TABLE candidate ADD COLUMN rival_artifact TEXT;
ALTER TABLE candidate ADD COLUMN confirmations INTEGER NOT NULL DEFAULT 0;
