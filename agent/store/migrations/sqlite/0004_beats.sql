-- The beats of workers lie in files beside the database; `beats_kept` says that there was one, so that its absence is
-- noticed and nobody is judged by what is missing.
alter table registry add column beats_kept integer not null default 0;
