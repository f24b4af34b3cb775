//! The config file as text.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Bytes of a config: far more than ten thousand jobs need, and few enough to be read at any time.
const CONFIG_MAX: u64 = 4 << 20;

/// The text of a config file. Whatever has come into its place, this neither waits nor fills the memory.
///
/// # Errors
/// When it cannot be read, is neither a regular file nor a device, is too large or no UTF-8.
pub(crate) fn text_of(file: &Path) -> io::Result<String> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed(); // a pipe would be waited for
    let opened = File::options().read(true).custom_flags(nonblocking).open(file)?;
    let kind = opened.metadata()?.file_type();
    // Nothing of a device is waited for either, and `/dev/null` stands for no config.
    if !(kind.is_file() || kind.is_char_device()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    opened.take(CONFIG_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > CONFIG_MAX {
        let why = format!("it has more than {CONFIG_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}
