-- The store's first shape: current rows replaced in place, and one journal with a cursor for each sink.

-- One row. The id names this journal for ever, so that a sink can tell it from one that was begun anew.
-- The last number stands here and not in `entries`, since trimming must never let a number be given twice.
create table journal (
    one           integer primary key check (one = 1),
    id            text    not null,
    last_sequence integer not null
) strict;
insert into journal (one, id, last_sequence) values (1, lower(hex(randomblob(16))), 0);

-- Read by number only, from a sink's cursor onwards; selecting kinds is a filter on that walk.
create table entries (
    sequence integer primary key,
    at_ms    integer not null,
    kind     text    not null,
    subject  text,
    body     text    not null
) strict;

-- `deadline_ms` has no index: the agent finds what is due in memory, and an index on a column that moves with every
-- beat would nearly double the cost of a beat.
create table subjects (
    name         text    primary key,
    kind         text    not null,
    verdict      text    not null,
    phase        text    not null,
    reason       text    not null,
    since_ms     integer not null,
    attempt      integer not null,
    epoch        integer not null,
    pickups      integer not null,
    last_beat_ms integer,
    sequence     integer not null,
    state        text    not null,
    deadline_ms  integer
) strict;

-- Alerts that fire, so that a restart neither repeats nor misses one.
create table alerts (
    fingerprint text    primary key,
    rule        text    not null,
    subject     text    not null,
    severity    text    not null,
    summary     text    not null,
    started_ms  integer not null
) strict;

create table sinks (
    sink            text    primary key,
    sequence        integer not null,
    lost            integer not null default 0,
    set_aside_count integer not null default 0
) strict;

-- Bounded by the journal: a row goes when its entry is trimmed, the count in `sinks` stays.
create table set_aside (
    sink     text    not null,
    sequence integer not null,
    why      text    not null,
    primary key (sink, sequence)
) strict, without rowid;

create table plugin_state (
    plugin text not null,
    key    text not null,
    value  blob not null,
    primary key (plugin, key)
) strict;
