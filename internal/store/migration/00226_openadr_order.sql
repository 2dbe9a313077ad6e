-- What the events of OpenADR programs ask of the organisation's own fleet.
-- +goose Up

-- A program whose events are for the fleet, and which part of it.
CREATE TABLE adr_binding (
    program_id UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    group_name TEXT NOT NULL,   -- a constraint group's sites alone; empty for all
    gsp_group  TEXT NOT NULL,   -- sites of a GSP group alone; empty for all
    service    TEXT NOT NULL,
    simple     TEXT NOT NULL,   -- the change in W at the levels 1, 2, 3 of SIMPLE, with blanks between
    who        TEXT NOT NULL,
    made_at    BIGINT NOT NULL
);
CREATE INDEX adr_binding_org ON adr_binding (org_id);

-- What an interval of an event asks for, and what became of it.
CREATE TABLE adr_order (
    id             UUID PRIMARY KEY,
    org_id         UUID NOT NULL,
    program_id     UUID NOT NULL, -- the program and the event may be gone
    event_id       UUID NOT NULL,
    interval_id    INTEGER NOT NULL,
    from_at        BIGINT NOT NULL,
    to_at          BIGINT NOT NULL,
    change_w       BIGINT NOT NULL, -- 0 with a limit, and where it could not be read
    limit_w        BIGINT,
    state          TEXT NOT NULL,   -- waiting, sent, short, refused, outranked, withdrawn
    problem        TEXT NOT NULL,
    instruction_id UUID,
    made_at        BIGINT NOT NULL,
    work_at        BIGINT,          -- when it is to be sent or stopped; null: not any more
    report_at      BIGINT           -- when what became of it is to be reported next; null: not any more
);
CREATE INDEX adr_order_program ON adr_order (program_id, to_at);
CREATE INDEX adr_order_event ON adr_order (event_id);
CREATE INDEX adr_order_org ON adr_order (org_id, id);
CREATE INDEX adr_order_work ON adr_order (org_id, work_at) WHERE work_at IS NOT NULL;
CREATE INDEX adr_order_report ON adr_order (org_id, report_at) WHERE report_at IS NOT NULL;
