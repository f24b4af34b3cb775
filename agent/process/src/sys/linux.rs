#![expect(unsafe_code, reason = "system calls that rustix has no safe form of")]

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Gid, Pid, Signal, Uid, WaitOptions};
use rustix::time::{ClockId, Timespec};

use crate::datagram::{Datagram, Sender};
use crate::run::Usage;
use crate::setup::Setup;

/// Bytes of one record that a signal descriptor yields.
pub(crate) const SIGNAL_RECORD: usize = size_of::<libc::signalfd_siginfo>();

/// A program with all it is executed with, made before the fork: after it nothing may be allocated.
pub(crate) struct Image {
    pub(crate) program: CString,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
}

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

/// Starts a program that gets its two descriptors as standard input and output: `posix_spawn`, no code between fork and
/// exec.
pub(crate) fn start(
    program: &Path,
    arguments: &[&OsStr; 2],
    remove: &[&str],
    set: &[(&str, &OsStr)],
    input: OwnedFd,
    output: OwnedFd,
) -> io::Result<u32> {
    #[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
    let mut command = Command::new(program);
    command.arg0(arguments[0]).arg(arguments[1]);
    for name in remove {
        command.env_remove(name);
    }
    command.envs(set.iter().copied());
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::null());
    command.spawn().map(|child| child.id())
}

/// Where a child failed before its program ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Execute,
    Directory,
    Cgroup,
    Limits,
    Nice,
    User,
}

impl Step {
    const ALL: [Self; 6] = [Self::Execute, Self::Directory, Self::Cgroup, Self::Limits, Self::Nice, Self::User];

    /// Error numbers lie below this (MAX_ERRNO), so a step and an error number fit into one number: all that comes back
    /// from a child is one.
    const FACTOR: i32 = 4096;

    fn tag(self, errno: i32) -> io::Error {
        let step = Self::ALL.iter().position(|step| *step == self).unwrap_or(0);
        io::Error::from_raw_os_error(errno + Self::FACTOR * i32::try_from(step).unwrap_or(0))
    }

    fn untag(error: io::Error) -> (Self, io::Error) {
        let Some(number) = error.raw_os_error() else { return (Self::Execute, error) };
        let step = usize::try_from(number / Self::FACTOR).ok().and_then(|step| Self::ALL.get(step).copied());
        (step.unwrap_or(Self::Execute), io::Error::from_raw_os_error(number % Self::FACTOR))
    }
}

/// Executes an image in a session and group of its own.
pub(crate) fn run(
    image: Image,
    directory: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
    keep: &[BorrowedFd<'_>],
    umask: Mode,
    setup: &Setup,
) -> Result<u32, (Step, io::Error)> {
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let arguments = pointers(&image.arguments);
    let environment = pointers(&image.environment);
    let (directory, keep) = (directory.as_raw_fd(), keep.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>());
    let program = image.program.as_ptr();
    let user = setup.user.as_ref().map(|user| Becoming {
        uid: Uid::from_raw(user.uid),
        gid: Gid::from_raw(user.gid),
        groups: user.groups.iter().map(|gid| Gid::from_raw(*gid)).collect(),
    });
    let failed = |error: Errno| (Step::Execute, error.into());
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
    let (report, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
    let in_child = Child {
        program,
        arguments,
        environment,
        directory,
        keep,
        umask,
        standard: [null.as_raw_fd(), output.as_raw_fd(), output.as_raw_fd()],
        setup,
        user,
    };
    let unified = setup.cgroup.iter().find_map(|entrance| entrance.folder.as_ref());
    // SAFETY: in the child `Child::execute` makes system calls only, and `leave` follows it: nothing is allocated, locked or
    // dropped there, so that it does not matter what other threads of the parent were doing.
    let forked = unsafe { fork(unified.map(AsRawFd::as_raw_fd)) };
    match forked.map_err(Step::untag)? {
        Forked::Child { is_inside } => {
            let error = in_child.execute(is_inside);
            leave(write.as_raw_fd(), &error)
        }
        Forked::Parent { child } => {
            drop(write);
            let mut number = [0; 4];
            // The end of the file without a number: the program runs, and with it the descriptor was closed.
            if File::from(report).read_exact(&mut number).is_ok() {
                let _ = pid(child).map(|child| rustix::process::waitpid(Some(child), WaitOptions::empty()));
                return Err(Step::untag(io::Error::from_raw_os_error(i32::from_ne_bytes(number))));
            }
            Ok(child)
        }
    }
}

/// Which side of a fork this is.
enum Forked {
    Child { is_inside: bool },
    Parent { child: u32 },
}

/// Forks, into a cgroup of version 2 where the kernel lets that be done in one step.
///
/// # Safety
/// The child may make system calls only.
unsafe fn fork(cgroup: Option<i32>) -> io::Result<Forked> {
    /// `CLONE_INTO_CGROUP`.
    const INTO_CGROUP: u64 = 1 << 33;

    let side = |found: libc::c_long, is_inside| match u32::try_from(found) {
        Ok(0) => Ok(Forked::Child { is_inside }),
        Ok(child) => Ok(Forked::Parent { child }),
        Err(_) => Err(io::Error::last_os_error()),
    };
    if let Some(cgroup) = cgroup.and_then(|fd| u64::try_from(fd).ok()) {
        // SAFETY: a structure of numbers, for which zero means nothing.
        let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
        arguments.flags = INTO_CGROUP;
        arguments.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
        arguments.cgroup = cgroup;
        // SAFETY: without CLONE_VM the child has a memory of its own, as after `fork`; the structure is whole.
        let found = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
        // Kernels before 5.7 and sandboxes refuse; then it is moved there, which says what is the matter if it may not be.
        if found >= 0 {
            return side(found, true);
        }
    }
    // SAFETY: the caller keeps the child to system calls.
    side(libc::c_long::from(unsafe { libc::fork() }), false)
}

/// Tells the parent why the program does not run, and ends this process without anything else.
fn leave(report: i32, error: &io::Error) -> ! {
    let number = error.raw_os_error().unwrap_or(libc::EINVAL).to_ne_bytes();
    // SAFETY: the pipe is open, and the four bytes are there.
    unsafe { libc::write(report, number.as_ptr().cast(), number.len()) };
    // SAFETY: it takes no pointer and does not return.
    unsafe { libc::_exit(127) }
}

/// Another user, as the kernel's calls take it.
struct Becoming {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

/// What the child needs between fork and exec. The pointers lead into an [`Image`] that outlives the fork.
struct Child<'a> {
    program: *const libc::c_char,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    directory: i32,
    keep: Vec<i32>,
    umask: Mode,
    /// what becomes standard input, output and error
    standard: [i32; 3],
    setup: &'a Setup,
    user: Option<Becoming>,
}

impl Child<'_> {
    /// Returns only when something failed. `is_inside`: it was forked into its cgroup of version 2.
    fn execute(&self, is_inside: bool) -> io::Error {
        match self.prepare(is_inside) {
            Err(error) => error,
            Ok(()) => {
                // SAFETY: program, arguments and environment are zero-terminated lists of zero-terminated texts made by `run`.
                unsafe { libc::execve(self.program, self.arguments.as_ptr(), self.environment.as_ptr()) };
                io::Error::last_os_error()
            }
        }
    }

    fn prepare(&self, is_inside: bool) -> io::Result<()> {
        rustix::process::setsid()?;
        rustix::process::umask(self.umask);
        // SAFETY: the descriptors are open in the parent for the whole of `run`, and the fork copied them.
        let borrow = |fd| unsafe { BorrowedFd::borrow_raw(fd) };
        let failed = |step: Step| move |error: Errno| step.tag(error.raw_os_error());
        // Before anything else: what it does from here on counts for its own cgroup.
        for entrance in self.setup.cgroup.iter().filter(|entrance| !(is_inside && entrance.folder.is_some())) {
            rustix::io::write(&entrance.procs, b"0").map_err(failed(Step::Cgroup))?;
        }
        for (number, fd) in (0..).zip(self.standard) {
            // SAFETY: it takes two numbers.
            if unsafe { libc::dup2(fd, number) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // What asks for privilege, before it is given up.
        for (resource, limit) in &self.setup.rlimits {
            rustix::process::setrlimit(*resource, *limit).map_err(failed(Step::Limits))?;
        }
        if let Some(nice) = self.setup.nice {
            rustix::process::setpriority_process(None, nice).map_err(failed(Step::Nice))?;
        }
        if let Some(user) = &self.user {
            // The calls mean one thread, and a forked child has no other.
            rustix::thread::set_thread_groups(&user.groups).map_err(failed(Step::User))?;
            rustix::thread::set_thread_res_gid(user.gid, user.gid, user.gid).map_err(failed(Step::User))?;
            rustix::thread::set_thread_res_uid(user.uid, user.uid, user.uid).map_err(failed(Step::User))?;
        }
        // As that user: its directory is one that it may enter.
        rustix::process::fchdir(borrow(self.directory)).map_err(failed(Step::Directory))?;
        for fd in &self.keep {
            rustix::io::fcntl_setfd(borrow(*fd), FdFlags::empty())?;
        }
        for signal in 1..=SIGNALS_MAX {
            // SAFETY: `signal` with SIG_DFL installs no code of ours. It fails for SIGKILL, SIGSTOP and the C library's
            // own two, which need no reset.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        if self.setup.ignores_sigpipe {
            ignore(Signal::PIPE)?;
        }
        set_mask(libc::SIG_SETMASK, &[])?;
        Ok(())
    }
}

/// The highest signal number on Linux (`_NSIG`).
const SIGNALS_MAX: i32 = 64;

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
