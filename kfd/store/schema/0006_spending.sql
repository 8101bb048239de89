-- What each draft, other model call and job of a campaign has cost; budgets are held against the sums.
CREATE TABLE spending (
    campaign TEXT NOT NULL REFERENCES campaign (id),
    key TEXT NOT NULL,
    micro_money INTEGER NOT NULL CHECK (micro_money >= 0),
    tokens INTEGER NOT NULL CHECK (tokens >= 0),
    device_ns INTEGER NOT NULL CHECK (device_ns >= 0),
    PRIMARY KEY (campaign, key)
) STRICT, WITHOUT ROWID;

-- The tokens of campaigns that are older than this table; what they cost, and their time on devices, is not known.
INSERT INTO spending (campaign, key, micro_money, tokens, device_ns)
SELECT campaign, campaign || '-' || ordinal, 0, input_tokens + output_tokens, 0 FROM candidate
WHERE input_tokens + output_tokens > 0;
