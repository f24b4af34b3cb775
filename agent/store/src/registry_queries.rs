//! The statements of groups, workers and targets.

use rusqlite::{CachedStatement, Connection, Row, params};

use crate::queries::{bound, number, optional_number};
use crate::registry::{
    BeatRow, DEAD_SILENT, GroupRow, RegistryRows, RegistryWrite, TargetRow, WorkerRow, refused_name,
};

/// What a death needs, inside its transaction: the same registration of the same instance, not dead, and not heard later.
/// All that is dead sorts between `dead` and `deae`.
const MAY_DIE: &str = "select 1 from workers
                       where name = ?1 and instance = ?2 and epoch = ?3 and heard_ms <= ?4
                         and not (standing >= 'dead' and standing < 'deae')
                         and not exists (select 1 from worker_deaths where name = ?1 and epoch = ?3)";

const DIE: &str = "insert or replace into worker_deaths
                       (name, epoch, verdict, beat_ms, heard_ms, sequence, state, active_job, errors)
                   values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

/// Whoever's row is written or removed has no other death than the one that the row tells of.
const REVIVE: &str = "delete from worker_deaths where name = ?1";

const UNASSIGN: &str = "update targets set holder = null, event = null, pickups = pickups + 1 where holder = ?1";

/// Makes the changes in their order, and adds to `refused` the names whose change was not made.
pub(crate) fn write(
    connection: &Connection,
    writes: &[RegistryWrite],
    refused: &mut Vec<String>,
) -> rusqlite::Result<()> {
    if writes.is_empty() {
        return Ok(());
    }
    // Many die or come together: their statements are looked up once.
    let mut deaths = Deaths {
        may_die: connection.prepare_cached(MAY_DIE)?,
        die: connection.prepare_cached(DIE)?,
        unassign: connection.prepare_cached(UNASSIGN)?,
        revive: connection.prepare_cached(REVIVE)?,
    };
    for write in writes {
        if !write_one(connection, write, &mut deaths)? {
            refused.extend(refused_name(write));
        }
    }
    Ok(())
}

/// The statements of a death.
struct Deaths<'a> {
    may_die: CachedStatement<'a>,
    die: CachedStatement<'a>,
    unassign: CachedStatement<'a>,
    revive: CachedStatement<'a>,
}

fn write_one(connection: &Connection, write: &RegistryWrite, deaths: &mut Deaths<'_>) -> rusqlite::Result<bool> {
    let changed = match write {
        RegistryWrite::Group(GroupRow { name, instance }) => connection
            .prepare_cached("insert or replace into worker_groups (name, instance) values (?1, ?2)")?
            .execute(params![name, bound(*instance)])?,
        RegistryWrite::Worker(row) => {
            let written = write_worker(connection, row)?;
            if written > 0 {
                deaths.revive.execute([&row.name])?;
            }
            written
        }
        RegistryWrite::Reap { name, instance, epoch, beat, verdict } => {
            let BeatRow { at_ms, heard_ms, sequence, state, active_job, errors } = beat;
            let (epoch, heard_ms) = (bound(*epoch), bound(*heard_ms));
            if !deaths.may_die.exists(params![name, bound(*instance), epoch, heard_ms])? {
                return Ok(false);
            }
            let (at_ms, sequence, errors) = (at_ms.map(bound), bound(*sequence), bound(*errors));
            deaths.die.execute(params![name, epoch, verdict, at_ms, heard_ms, sequence, state, active_job, errors])?;
            deaths.unassign.execute([name])?;
            return Ok(true);
        }
        RegistryWrite::RemoveWorker { name, epoch } => {
            let sql = "delete from workers where name = ?1 and epoch = ?2";
            if connection.prepare_cached(sql)?.execute(params![name, bound(*epoch)])? > 0 {
                deaths.unassign.execute([name])?;
                deaths.revive.execute([name])?;
            }
            return Ok(true);
        }
        RegistryWrite::Target(row) => write_target(connection, row)?,
        RegistryWrite::RemoveTarget(name) => {
            connection.prepare_cached("delete from targets where name = ?1")?.execute([name])?;
            return Ok(true);
        }
        RegistryWrite::Epoch(epoch) => connection
            .prepare_cached("update registry set epoch = max(epoch, ?1) where one = 1")?
            .execute([bound(*epoch)])?,
        RegistryWrite::Listened { listened_ms, baseline_ms } => connection
            .prepare_cached("update registry set listened_ms = ?1, baseline_ms = ?2 where one = 1")?
            .execute([bound(*listened_ms), bound(*baseline_ms)])?,
    };
    Ok(changed > 0)
}

fn write_worker(connection: &Connection, row: &WorkerRow) -> rusqlite::Result<usize> {
    let sql = "insert into workers (name, worker_group, instance, epoch, standing, verdict, interval_ms, ttl_ms,
                                    start_ms, host, pid, registered_ms, beat_ms, heard_ms, sequence, state, active_job,
                                    errors)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
               on conflict (name) do update set
                   worker_group = excluded.worker_group, instance = excluded.instance, epoch = excluded.epoch,
                   standing = excluded.standing, verdict = excluded.verdict, interval_ms = excluded.interval_ms,
                   ttl_ms = excluded.ttl_ms, start_ms = excluded.start_ms, host = excluded.host, pid = excluded.pid,
                   registered_ms = excluded.registered_ms, beat_ms = excluded.beat_ms, heard_ms = excluded.heard_ms,
                   sequence = excluded.sequence, state = excluded.state, active_job = excluded.active_job,
                   errors = excluded.errors
               where excluded.epoch >= workers.epoch";
    let WorkerRow { name, group, instance, epoch, standing, verdict, .. } = row;
    let WorkerRow { interval_ms, ttl_ms, start_ms, host, pid, registered_ms, beat, .. } = row;
    connection.prepare_cached(sql)?.execute(params![
        name,
        group,
        bound(*instance),
        bound(*epoch),
        standing,
        verdict,
        bound(*interval_ms),
        bound(*ttl_ms),
        bound(*start_ms),
        host,
        pid,
        bound(*registered_ms),
        beat.at_ms.map(bound),
        bound(beat.heard_ms),
        bound(beat.sequence),
        beat.state,
        beat.active_job,
        bound(beat.errors),
    ])
}

fn write_target(connection: &Connection, row: &TargetRow) -> rusqlite::Result<usize> {
    let sql = "insert into targets (name, holder, epoch, event, pickups) values (?1, ?2, ?3, ?4, ?5)
               on conflict (name) do update set holder = excluded.holder, epoch = excluded.epoch,
                   event = excluded.event, pickups = excluded.pickups
               where excluded.epoch >= targets.epoch";
    let TargetRow { name, holder, epoch, event, pickups } = row;
    connection.prepare_cached(sql)?.execute(params![name, holder, bound(*epoch), event, pickups])
}

/// Notes that beats lie beside the database.
pub(crate) fn know_of_beats(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("update registry set beats_kept = 1 where one = 1 and beats_kept = 0")?.execute([])?;
    Ok(())
}

/// Reads all rows, by name, without the beats beside the database, and whether there were any.
pub(crate) fn rows(connection: &Connection) -> rusqlite::Result<(RegistryRows, bool)> {
    let sql = "select epoch, listened_ms, baseline_ms, beats_kept from registry where one = 1";
    let counters = |row: &Row<'_>| Ok((number(row, 0)?, number(row, 1)?, number(row, 2)?, row.get(3)?));
    let (epoch, listened_ms, baseline_ms, were_kept) = connection.prepare_cached(sql)?.query_row([], counters)?;
    let group = |row: &Row<'_>| Ok(GroupRow { name: row.get(0)?, instance: number(row, 1)? });
    let target = |row: &Row<'_>| {
        let (name, holder, event, pickups) = (row.get(0)?, row.get(1)?, row.get(3)?, row.get(4)?);
        Ok(TargetRow { name, holder, epoch: number(row, 2)?, event, pickups })
    };
    let all = "select name, worker_group, instance, epoch, standing, verdict, interval_ms, ttl_ms, start_ms, host, pid,
                      registered_ms, beat_ms, heard_ms, sequence, state, active_job, errors
               from workers order by name";
    let workers = connection.prepare_cached(all)?.query_map([], worker)?.collect::<rusqlite::Result<_>>()?;
    let rows = RegistryRows {
        epoch,
        listened_ms,
        baseline_ms,
        groups: connection
            .prepare_cached("select name, instance from worker_groups order by name")?
            .query_map([], group)?
            .collect::<rusqlite::Result<_>>()?,
        workers: with_deaths(connection, workers)?,
        targets: connection
            .prepare_cached("select name, holder, epoch, event, pickups from targets order by name")?
            .query_map([], target)?
            .collect::<rusqlite::Result<_>>()?,
        beats_lost: None,
    };
    Ok((rows, were_kept))
}

/// Puts the deaths into the rows of those whom they are about. Both are in the order of their names.
fn with_deaths(connection: &Connection, mut workers: Vec<WorkerRow>) -> rusqlite::Result<Vec<WorkerRow>> {
    let sql = "select name, epoch, verdict, beat_ms, heard_ms, sequence, state, active_job, errors
               from worker_deaths order by name";
    let mut query = connection.prepare_cached(sql)?;
    let mut deaths = query.query([])?;
    let mut rows = workers.iter_mut().peekable();
    while let Some(death) = deaths.next()? {
        let (name, epoch): (String, u64) = (death.get(0)?, number(death, 1)?);
        while rows.next_if(|row| row.name < name).is_some() {}
        let Some(row) = rows.next_if(|row| row.name == name && row.epoch == epoch) else { continue };
        DEAD_SILENT.clone_into(&mut row.standing);
        row.verdict = death.get(2)?;
        row.beat = beat(death, 3)?;
    }
    Ok(workers)
}

/// A beat, whose columns lie beside one another.
fn beat(row: &Row<'_>, first: usize) -> rusqlite::Result<BeatRow> {
    Ok(BeatRow {
        at_ms: optional_number(row, first)?,
        heard_ms: number(row, first + 1)?,
        sequence: number(row, first + 2)?,
        state: row.get(first + 3)?,
        active_job: row.get(first + 4)?,
        errors: number(row, first + 5)?,
    })
}

fn worker(row: &Row<'_>) -> rusqlite::Result<WorkerRow> {
    Ok(WorkerRow {
        name: row.get(0)?,
        group: row.get(1)?,
        instance: number(row, 2)?,
        epoch: number(row, 3)?,
        standing: row.get(4)?,
        verdict: row.get(5)?,
        interval_ms: number(row, 6)?,
        ttl_ms: number(row, 7)?,
        start_ms: number(row, 8)?,
        host: row.get(9)?,
        pid: row.get(10)?,
        registered_ms: number(row, 11)?,
        beat: beat(row, 12)?,
    })
}
