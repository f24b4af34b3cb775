-- No silence from before `baseline_ms` on the listening time line counts: the agent could not hear, or doubted itself.

alter table registry add column baseline_ms integer not null default 0;
