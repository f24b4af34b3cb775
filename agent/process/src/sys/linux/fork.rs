//! From one process to two: the fork, what the child does before its program, and how it tells that it could not.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Gid, Signal, Uid, WaitOptions};

use super::{ignore, pid, set_mask};
use crate::setup::Setup;

/// A program with all it is executed with, made before the fork: after it nothing may be allocated.
pub(crate) struct Image {
    pub(crate) program: CString,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
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
