-- Who writes: each agent that takes the store raises the number, and one that took it before is refused from then on.

alter table journal add column holder integer not null default 0;
