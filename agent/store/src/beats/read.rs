//! Reads the files of beats, and says what cannot be read.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use hashbrown::HashMap;

use super::format::{self, FRAME_BYTES, HEADER_BYTES, Header};
use super::{Beat, SUFFIX, failed, path};
use crate::error::StoreError;
use crate::registry::RegistryRows;

/// Where a file ends for its reader.
#[derive(Debug, Default)]
pub(super) struct End {
    /// bytes that are whole
    pub(super) bytes: u64,
    /// what lies behind them, if it is more than the rest of a write that was cut off
    pub(super) damage: Option<String>,
}

/// The numbers of the files beside a database, in order.
pub(crate) fn files(database: &Path) -> Result<Vec<u64>, StoreError> {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let prefix = format!("{}{SUFFIX}", database.file_name().unwrap_or_default().to_string_lossy());
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let name = entry.map_err(|error| failed(folder, error))?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Puts the beats of all files into the rows they belong to, and says in the rows what could not be read. Where beats
/// were kept before and no file is there, they are lost too.
pub(crate) fn take_in(
    database: &Path,
    journal_id: &str,
    rows: &mut RegistryRows,
    were_kept: bool,
) -> Result<(), StoreError> {
    let files = files(database)?;
    let by_epoch: HashMap<u64, usize> = (0..).zip(&rows.workers).map(|(place, row)| (row.epoch, place)).collect();
    let workers = &mut rows.workers;
    let mut lost = Vec::new();
    for number in &files {
        let path = path(database, *number);
        let end = walk(&path, journal_id, |beat| {
            if let Some(row) = by_epoch.get(&beat.epoch).and_then(|place| workers.get_mut(*place)) {
                row.beat.replace(&beat);
            }
        })?;
        lost.extend(end.damage.map(|damage| format!("{}: {damage}", path.display())));
    }
    if files.is_empty() && were_kept {
        lost.push(format!("the files beside {} are gone", database.display()));
    }
    rows.beats_lost = (!lost.is_empty()).then(|| lost.join("; "));
    Ok(())
}

/// Gives every beat of a file to `each`, up to where it is torn or rubbish.
pub(super) fn walk(path: &Path, journal_id: &str, mut each: impl FnMut(Beat<'_>)) -> Result<End, StoreError> {
    let io_failed = |error| failed(path, error);
    let file = File::open(path).map_err(io_failed)?;
    let size = file.metadata().map_err(io_failed)?.len();
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut end = End::default();
    let Some(header) = take::<HEADER_BYTES>(&mut input, size).map_err(io_failed)? else { return Ok(end) };
    match format::read_header(&header, journal_id) {
        Header::Own => {}
        Header::Newer(found) => {
            let store = path.display().to_string();
            return Err(StoreError::NewerVersion { store, found, known: format::VERSION });
        }
        Header::Foreign if header.iter().all(|byte| *byte == 0) => return only_zeros(input, end).map_err(io_failed),
        Header::Foreign => {
            end.damage = Some("it is no file of beats of this database".to_owned());
            return Ok(end);
        }
    }
    end.bytes = HEADER_BYTES as u64;
    let mut payload = Vec::new();
    while let Some(frame) = take::<FRAME_BYTES>(&mut input, size - end.bytes).map_err(io_failed)? {
        let Some((length, checksum)) = format::read_frame(&frame) else {
            // A file can have grown before what was written into it was on the disk.
            let is_blank = frame.iter().all(|byte| *byte == 0);
            if !is_blank {
                end.damage = Some(rubbish(end.bytes, size));
            }
            return if is_blank { only_zeros(input, end).map_err(io_failed) } else { Ok(end) };
        };
        let batch = FRAME_BYTES as u64 + u64::from(length);
        if batch > size - end.bytes {
            return Ok(end);
        }
        payload.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
        input.read_exact(&mut payload).map_err(io_failed)?;
        if crc32fast::hash(&payload) != checksum || !format::read_beats(&payload, &mut each) {
            end.damage = Some(rubbish(end.bytes, size));
            return Ok(end);
        }
        end.bytes += batch;
    }
    Ok(end)
}

fn rubbish(at: u64, size: u64) -> String {
    format!("rubbish at byte {at}; of {size} bytes those from there on are not trusted")
}

/// The next bytes; `None` where fewer are left.
fn take<const BYTES: usize>(input: &mut impl Read, left: u64) -> io::Result<Option<[u8; BYTES]>> {
    let mut bytes = [0; BYTES];
    if left < BYTES as u64 {
        return Ok(None);
    }
    input.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

/// Zeros up to the end are the rest of a write that was cut off; anything behind them is damage.
fn only_zeros(mut input: impl Read, mut end: End) -> io::Result<End> {
    let mut rest = Vec::new();
    input.read_to_end(&mut rest)?;
    if rest.iter().any(|byte| *byte != 0) {
        end.damage = Some(format!("rubbish behind byte {}", end.bytes));
    }
    Ok(end)
}
