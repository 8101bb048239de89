-- Share of a plain copy's speed that the best kernel reaches.
ALTER TABLE campaign ADD COLUMN roofline REAL;
