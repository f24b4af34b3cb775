-- Groups, workers and targets: what has no file, so that these rows are the truth.

-- One row. `epoch` is the highest epoch ever given, so that none falls when the row that carried it is gone.
-- `listened_ms` is how far the agent's listening time line had come: silence is counted on it over restarts.
create table registry (
    one         integer primary key check (one = 1),
    epoch       integer not null,
    listened_ms integer not null
) strict;
insert into registry (one, epoch, listened_ms) values (1, 0, 0);

create table worker_groups (
    name     text    primary key,
    instance integer not null
) strict;

-- `heard_ms` lies on the listening time line; `registered_ms` and `beat_ms` are wall time, for people.
create table workers (
    name          text    primary key,
    worker_group  text    not null,
    instance      integer not null,
    epoch         integer not null,
    standing      text    not null,
    verdict       text    not null,
    interval_ms   integer not null,
    ttl_ms        integer not null,
    start_ms      integer not null,
    host          text,
    pid           integer,
    registered_ms integer not null,
    beat_ms       integer,
    heard_ms      integer not null,
    sequence      integer not null,
    state         text,
    active_job    text,
    errors        integer not null
) strict;

-- A target without a holder was lost by one, and its epoch is the one that was fenced off.
create table targets (
    name    text    primary key,
    holder  text,
    epoch   integer not null,
    event   text,
    pickups integer not null
) strict;
-- A death releases what one worker holds.
create index targets_by_holder on targets (holder) where holder is not null;
