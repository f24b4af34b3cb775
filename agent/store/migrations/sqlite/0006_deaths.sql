-- Whose lease ran out, with the last beat. Many die together, each in another page of `workers`; their deaths lie close to
-- one another. A death counts only for the registration of its epoch.
create table worker_deaths (
    name       text    primary key,
    epoch      integer not null,
    verdict    text    not null,
    beat_ms    integer,
    heard_ms   integer not null,
    sequence   integer not null,
    state      text,
    active_job text,
    errors     integer not null
) strict, without rowid;
