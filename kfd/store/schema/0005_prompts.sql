-- Mutations of prompt variants: who was to change, what became of it, and its place among the outcomes that were told.
CREATE TABLE prompt (
    campaign TEXT NOT NULL REFERENCES campaign (id),
    nth INTEGER NOT NULL CHECK (nth > 0),
    parent TEXT NOT NULL,
    asked_at INTEGER NOT NULL CHECK (asked_at >= 0),
    state TEXT NOT NULL CHECK (state IN ('asking', 'accepted', 'rejected', 'dropped')),
    variant TEXT NOT NULL,
    generation INTEGER NOT NULL,
    regions TEXT NOT NULL,
    reason TEXT NOT NULL,
    faults INTEGER NOT NULL CHECK (faults >= 0),
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL CHECK (input_tokens >= 0),
    output_tokens INTEGER NOT NULL CHECK (output_tokens >= 0),
    ended_at INTEGER CHECK (ended_at >= asked_at),
    ended_before INTEGER,
    ended_nth INTEGER,
    PRIMARY KEY (campaign, nth),
    CHECK ((state = 'asking') = (ended_at IS NULL)),
    CHECK ((state = 'accepted') = (variant <> ''))
) STRICT;

CREATE INDEX prompt_variant ON prompt (campaign, variant) WHERE variant <> '';

-- Questions and answers of mutations, compressed (zlib).
CREATE TABLE prompt_text (
    campaign TEXT NOT NULL,
    nth INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('prompt', 'answer')),
    body BLOB NOT NULL,
    PRIMARY KEY (campaign, nth, kind),
    FOREIGN KEY (campaign, nth) REFERENCES prompt (campaign, nth)
) STRICT;

-- Children of a variant, in the order of telling.
CREATE INDEX candidate_variant ON candidate (campaign, variant, told)
WHERE told IS NOT NULL AND operator <> 'tune' AND operator <> 'migrate';
