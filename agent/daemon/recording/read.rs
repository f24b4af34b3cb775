//! A recording is read line by line, past what a crash tore.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use latido_driver::recording::{Line, RECORDING_VERSION};

/// Bytes of one line that is read. A beginning with a hundred thousand subjects has less.
const LINE_MAX: u64 = 256 * 1024 * 1024;

/// Why a file is no recording that can be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It cannot be opened or read.
    #[error("read {path}")]
    Read {
        /// the file
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// It holds nothing.
    #[error("replay {path}: it is empty")]
    Empty {
        /// the file
        path: PathBuf,
    },
    /// It does not begin as a recording does.
    #[error("replay {path}: its first line is no beginning of a recording")]
    NoRecording {
        /// the file
        path: PathBuf,
    },
    /// A later format.
    #[error("replay {path}: its format is version {version}, and this latido knows versions up to {RECORDING_VERSION}")]
    Newer {
        /// the file
        path: PathBuf,
        /// its version
        version: u32,
    },
}

/// Reads a recording line by line. Answers the numbers of the lines, from 1, that cannot be read; those between one of
/// them and the next beginning are left out, since nothing would be known of what they go on from.
///
/// # Errors
/// It cannot be read, or is no recording that this latido knows.
pub fn read(path: &Path, mut take: impl FnMut(Line)) -> Result<Vec<u64>, RecordingError> {
    let refuse = |source| RecordingError::Read { path: path.to_owned(), source };
    let mut reader = BufReader::new(File::open(path).map_err(refuse)?);
    let (mut damaged, mut text) = (Vec::new(), Vec::new());
    // What was read belongs to a beginning; `None` before the first line.
    let mut is_known = None;
    for number in 1.. {
        text.clear();
        if reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut text).map_err(refuse)? == 0 {
            break;
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Line>(&text) {
            Ok(Line::Began(beginning)) if beginning.version > RECORDING_VERSION => {
                return Err(RecordingError::Newer { path: path.to_owned(), version: beginning.version });
            }
            Ok(line @ Line::Began(_)) => {
                is_known = Some(true);
                take(line);
            }
            Ok(line) if is_known == Some(true) => take(line),
            Ok(_) if is_known == Some(false) => {}
            Ok(_) => return Err(RecordingError::NoRecording { path: path.to_owned() }),
            Err(_) => {
                if let Some(version) = newer(&text) {
                    return Err(RecordingError::Newer { path: path.to_owned(), version });
                }
                if is_known.replace(false).is_none() {
                    return Err(RecordingError::NoRecording { path: path.to_owned() });
                }
                damaged.push(number);
            }
        }
    }
    if is_known.is_none() {
        return Err(RecordingError::Empty { path: path.to_owned() });
    }
    Ok(damaged)
}

/// The version of a beginning that is newer than what this latido knows, whatever else it says.
fn newer(text: &[u8]) -> Option<u32> {
    let line: serde_json::Value = serde_json::from_slice(text).ok()?;
    let version = u32::try_from(line.get("began")?.get("version")?.as_u64()?).ok()?;
    (version > RECORDING_VERSION).then_some(version)
}
