-- What a checker reads: each file once, by which run it was recorded, and how often its hash was recorded.
-- A path is text where it is UTF-8 and a blob of its bytes where it is not.
create table if not exists files (
    path         primary key not null,
    size         integer not null,
    modified_ns  integer not null,
    hash         text,              -- SHA-256 in hexadecimal; null where the file could not be read
    skipped      text,              -- why it could not be read
    run          integer not null,  -- the run that recorded it last
    times_hashed integer not null   -- more than one only for a file that changed between two runs
);

-- A row is written when the run starts; its counters change in the same transactions as the files.
create table if not exists runs (
    run       integer primary key,
    attempt   integer,                    -- LATIDO_ATTEMPT, where there is one
    started   text    not null,
    hashed    integer not null default 0, -- files this run hashed and committed
    skipped   integer not null default 0, -- files this run found recorded and unchanged
    committed integer not null default 0, -- transactions with files
    completed integer not null default 0  -- 1 when the run came to its end
);

create table if not exists unread_folders (
    path   primary key not null,
    reason text not null
);
