#![expect(unsafe_code, reason = "system calls that rustix has no safe form of")]

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use rustix::time::{ClockId, Timespec};

#[path = "linux/fork.rs"]
mod fork;

pub(crate) use fork::{Image, Step, run};

use crate::datagram::{Datagram, Sender};
use crate::run::Usage;

/// Bytes of one record that a signal descriptor yields.
pub(crate) const SIGNAL_RECORD: usize = size_of::<libc::signalfd_siginfo>();

/// A pid as the kernel's calls take it. `None` for 0 and for what is no pid: these would mean groups.
pub(crate) fn pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)
}

/// The monotonic clock. It bounds waits in this crate and judges nothing.
pub(crate) fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// A time for the kernel's calls.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    let tv_sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}

/// Waits for what has no descriptor to wait on: a lock's holder, an entry in `/proc`.
pub(crate) fn pause(duration: Duration) {
    // An interrupted pause is a shorter one; every caller looks again.
    let _ = rustix::thread::nanosleep(&timespec(duration));
}

/// The host's name.
pub(crate) fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// Starts a program, which has its name as the first argument and gets its three descriptors as the standard ones:
/// `posix_spawn`, no code between fork and exec.
pub(crate) fn start(
    program: &Path,
    arguments: &[&OsStr],
    remove: &[&str],
    set: &[(&str, &OsStr)],
    standard: [Stdio; 3],
) -> io::Result<u32> {
    #[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
    let mut command = Command::new(program);
    if let Some((name, rest)) = arguments.split_first() {
        command.arg0(name).args(rest);
    }
    for name in remove {
        command.env_remove(name);
    }
    command.envs(set.iter().copied());
    let [input, output, error] = standard;
    command.stdin(input).stdout(output).stderr(error).spawn().map(|child| child.id())
}

/// Starts a program without environment and with these standard descriptors.
pub(crate) fn start_bare(
    program: &Path,
    arguments: &[&OsStr],
    input: OwnedFd,
    output: OwnedFd,
    says: OwnedFd,
) -> io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir("/");
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(says)).spawn()
}

/// Blocks these signals and opens a descriptor that yields them.
pub(crate) fn listen(signals: &[Signal]) -> io::Result<OwnedFd> {
    let set = set_mask(libc::SIG_BLOCK, signals)?;
    // SAFETY: `set` is a signal set that was initialised above; -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above has just made this descriptor and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ignores a signal.
pub(crate) fn ignore(signal: Signal) -> io::Result<()> {
    // SAFETY: `signal` with SIG_IGN installs no code of ours.
    let before = unsafe { libc::signal(signal.as_raw(), libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_mask(how: i32, signals: &[Signal]) -> io::Result<libc::sigset_t> {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set it is given.
    let mut set = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    };
    for signal in signals {
        // SAFETY: the set is initialised, and a `Signal` is a valid number.
        unsafe { libc::sigaddset(&raw mut set, signal.as_raw()) };
    }
    // SAFETY: the set is initialised; a null pointer says that the old mask is not wanted.
    match unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(set),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// What the kernel counted for collected children.
pub(crate) fn usage_of_collected() -> Usage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes a whole `rusage`; it is zeroed before, so it is initialised even if the call failed.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let duration = |time: libc::timeval| {
        Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    Usage {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    }
}

/// Gives the heap's free pages back to the kernel.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and locks the heap by itself.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives the pages of the calling thread's stack back that lie well below what is in use: calls before went deeper.
pub(crate) fn trim_stack() {
    /// What this call and a signal may use of it meanwhile.
    const IN_USE: usize = 16 * 1024;
    /// As deep as a launch goes, and more.
    const DEPTH: usize = 256 * 1024;

    let here = 0_u8;
    let page = rustix::param::page_size();
    let end = ((&raw const here).addr() - IN_USE) & !(page - 1);
    // SAFETY: below the frames in use nothing of a stack is read before it is written. Not all of it may be mapped, which the
    // kernel passes over; nothing else lies there, since the kernel keeps a gap below the largest size of the stack.
    unsafe {
        libc::madvise(std::ptr::without_provenance_mut(end - DEPTH), DEPTH, libc::MADV_DONTNEED);
    }
}

/// Takes the standard input and output that a starter handed over, puts `/dev/null` in their place, and closes every
/// other descriptor that leaked in.
pub(crate) fn take_standard() -> io::Result<(OwnedFd, OwnedFd)> {
    // SAFETY: called first thing in `main`, before anything was opened: what is closed here has no owner.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    // The copies lie above the standard three even when one of these was closed by the starter. Not by way of
    // `std::io::stdin`, which would make buffers that a supervisor keeps for its whole life.
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok((input, output))
}

/// Takes the standard error output, and puts `/dev/null` in its place.
pub(crate) fn take_error() -> io::Result<OwnedFd> {
    let error = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(error)
}

/// Descriptors that one message may carry (the kernel's SCM_MAX_FD): all are received, so that all are closed.
const DESCRIPTORS_MAX: usize = 253;

/// Receives a datagram with its descriptors and its sender. By hand: rustix takes a pid that cannot be 0, and the kernel
/// tells 0 of a sender whose pid means nothing here.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Datagram> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // Of words, so that the headers in it are aligned; each of the two messages has a header of at most 4 words.
    let mut control = [0_u64; DESCRIPTORS_MAX / 2 + 1 + 2 + 2 * 4];
    // SAFETY: a message header of zeros is a valid one: no name, no parts, no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let length = loop {
        // SAFETY: the header leads to one part and to control data, which live and are writable for the length given.
        let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        match usize::try_from(received) {
            Ok(length) => break length.min(buffer.len()),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    };
    let mut datagram = Datagram { length, descriptors: Vec::new(), sender: None };
    // SAFETY: the kernel has filled the control data and says in the header how much of it.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: it leads to a whole header inside the control data, or it would be null.
        let header = unsafe { std::ptr::read(next) };
        // SAFETY: as above; the data follows the header.
        let data = unsafe { libc::CMSG_DATA(next) };
        // SAFETY: the length of a header alone is a constant sum.
        let size = header.cmsg_len - unsafe { libc::CMSG_LEN(0) } as usize;
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                for index in 0..size / size_of::<i32>() {
                    // SAFETY: the kernel has just made these descriptors, one after another, and nobody else has them.
                    let fd = unsafe { OwnedFd::from_raw_fd(data.cast::<i32>().add(index).read_unaligned()) };
                    datagram.descriptors.push(fd);
                }
            }
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if size >= size_of::<libc::ucred>() => {
                // SAFETY: there is room for a whole one, and any bytes make one.
                let told = unsafe { data.cast::<libc::ucred>().read_unaligned() };
                datagram.sender = Some(Sender { pid: u32::try_from(told.pid).unwrap_or(0), user: told.uid });
            }
            _ => {}
        }
        // SAFETY: as for the first one.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
    }
    Ok(datagram)
}
