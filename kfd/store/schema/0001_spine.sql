-- The first schema: campaigns, candidates, jobs, texts, evidence, elites and the event log.
CREATE TABLE campaign (
    id TEXT PRIMARY KEY,
    idempotency_key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('baselining', 'running', 'paused', 'verifying', 'finished', 'failed', 'cancelled')),
    reason TEXT NOT NULL,
    best TEXT,
    final_speedups TEXT NOT NULL,
    verify_note TEXT NOT NULL,
    verifications INTEGER NOT NULL CHECK (verifications >= 0),
    active_ns INTEGER NOT NULL CHECK (active_ns >= 0),
    incidents INTEGER NOT NULL CHECK (incidents >= 0),
    admitted INTEGER NOT NULL CHECK (admitted IN (0, 1)),
    submitted_at TEXT NOT NULL,
    spec TEXT NOT NULL
) STRICT;

CREATE INDEX campaign_open ON campaign (id) WHERE state NOT IN ('finished', 'failed', 'cancelled');

CREATE TABLE candidate (
    campaign TEXT NOT NULL REFERENCES campaign (id),
    ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
    state TEXT NOT NULL CHECK (state IN ('drafting', 'building', 'running', 'confirming', 'judged', 'discarded')),
    outcome TEXT NOT NULL,
    text TEXT NOT NULL,
    operator TEXT NOT NULL,
    parent INTEGER,
    parent_source TEXT NOT NULL,
    inspirations TEXT NOT NULL,
    nth INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    repair_depth INTEGER NOT NULL,
    model TEXT NOT NULL,
    source TEXT NOT NULL,
    normal TEXT NOT NULL,
    cell TEXT,
    artifact TEXT,
    fitness REAL,
    speedups TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    worker TEXT NOT NULL,
    PRIMARY KEY (campaign, ordinal),
    CHECK ((state IN ('judged', 'discarded')) = (outcome <> ''))
) STRICT, WITHOUT ROWID;

CREATE INDEX candidate_open ON candidate (campaign, ordinal) WHERE state IN ('drafting', 'building', 'running', 'confirming');
CREATE INDEX candidate_repair ON candidate (campaign, parent) WHERE operator = 'repair';
CREATE INDEX candidate_outcome ON candidate (campaign, outcome);

CREATE TABLE elite (
    campaign TEXT NOT NULL REFERENCES campaign (id),
    cell TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (campaign, cell),
    FOREIGN KEY (campaign, ordinal) REFERENCES candidate (campaign, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE job (
    id TEXT PRIMARY KEY,
    campaign TEXT NOT NULL REFERENCES campaign (id),
    state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'settled')),
    attempt INTEGER NOT NULL CHECK (attempt >= 0),
    incidents INTEGER NOT NULL,
    agent_losses INTEGER NOT NULL,
    cancelled INTEGER NOT NULL CHECK (cancelled IN (0, 1)),
    worker TEXT,
    slot TEXT,
    session TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX job_open ON job (campaign, id) WHERE state <> 'settled';

-- Texts of candidates, compressed (zlib). Appended in order of arrival, found by candidate.
CREATE TABLE text (
    campaign TEXT NOT NULL REFERENCES campaign (id),
    ordinal INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('source', 'prompt', 'answer')),
    body BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX text_of ON text (campaign, ordinal, kind);

-- Reports of settled jobs as JSON: the evidence behind verdicts.
CREATE TABLE report (
    campaign TEXT NOT NULL REFERENCES campaign (id),
    ordinal INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX report_of ON report (campaign, ordinal, purpose);

CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    campaign TEXT,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE INDEX event_of ON event (campaign, seq);
CREATE INDEX event_bound ON event (campaign, seq) WHERE kind = 'campaign.bound';
