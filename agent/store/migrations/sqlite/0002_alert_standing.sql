-- What an alert needs to go on over a restart: whom it is about, what people were told of it, and who said that it is
-- known.
alter table alerts add column key             text    not null default '';
alter table alerts add column about           text    not null default 'subject';
alter table alerts add column host            text;
alter table alerts add column standing        text    not null default 'firing';
alter table alerts add column told            text    not null default 'warning';
alter table alerts add column told_ms         integer not null default 0;
alter table alerts add column acknowledged    text;
alter table alerts add column acknowledged_by text;
alter table alerts add column comings         integer not null default 1;
alter table alerts add column subjects        integer not null default 1;

update alerts set
    key = substr(fingerprint, length(rule) + 2, length(fingerprint) - length(rule) - length(subject) - 2),
    about = case when rule = 'agent' then 'plugin' else 'subject' end,
    told = severity,
    told_ms = started_ms;

-- What is kept quiet, and until when. The scope is JSON that the store never reads.
create table silences (
    number         integer primary key,
    scope          text    not null,
    since_ms       integer not null,
    until_ms       integer not null,
    until_resolved integer not null,
    asked_by       text    not null,
    reason         text    not null
) strict;
