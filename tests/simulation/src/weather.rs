//! Faults that last: until when each of them holds, and how each of them strikes.

use std::time::Duration;

use crate::attempt;
use crate::faults::{Fault, Lie};
use crate::host::{Process, Role};
use crate::world::{Armed, Event, World};

/// Until when something is the case.
pub(crate) type Until = Duration;

/// Faults that last, for one job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OfJob {
    pub(crate) loses_beats: Until,
    pub(crate) silent: Until,
    pub(crate) stands_still: Until,
    pub(crate) fails: Until,
    pub(crate) broken: Until,
    pub(crate) unkillable: Until,
}

/// Faults that last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) jobs: Vec<OfJob>,
    pub(crate) late_word: (Until, Duration),
    pub(crate) double_word: Until,
    pub(crate) slow_store: (Until, Duration),
    pub(crate) store_fails: Until,
    pub(crate) disk_full: Until,
    pub(crate) slow_plugin: (Until, Duration),
    pub(crate) lie: Option<(Until, Lie)>,
    pub(crate) blind: Until,
}

impl Weather {
    pub(crate) fn new(jobs: usize) -> Self {
        Self { jobs: vec![OfJob::default(); jobs], ..Self::default() }
    }

    pub(crate) fn lie(&self, now: Duration) -> Option<Lie> {
        self.lie.filter(|(until, _)| now < *until).map(|(_, lie)| lie)
    }
}

/// A broken disk may come and go in a moment; what is due by then is due for longer than this.
const ROTATED_FOR: Duration = Duration::from_secs(20);

impl World {
    pub(crate) fn strike_now(&mut self, fault: Fault) {
        let now = self.now();
        match fault {
            Fault::LoseBeats { job, length } => self.weather.jobs[job].loses_beats = now + length,
            Fault::LateWord { length, by } => self.weather.late_word = (now + length, by),
            Fault::DoubleWord { length } => self.weather.double_word = now + length,
            Fault::CrashAgent { down } => self.crash_agent(down),
            Fault::StopAgent { length } => {
                if let Some(agent) = self.agent() {
                    self.stop_process(agent, length);
                }
            }
            Fault::CrashAtStep { steps, before } => self.armed = Some(Armed { steps, before }),
            Fault::SecondAgent => self.after(Duration::ZERO, Event::StartAgent),
            Fault::LoseAgentLock { length } => self.lose_agent_lock(length),
            Fault::KillSupervisor { job } => {
                if let Some(supervisor) = self.supervisor_of(job) {
                    self.die(supervisor);
                }
            }
            Fault::StopSupervisor { job, length } => {
                if let Some(supervisor) = self.supervisor_of(job) {
                    self.stop_process(supervisor, length);
                }
            }
            Fault::KillWork { job, signal } => {
                if let Some(attempt) = self.running_attempt(job) {
                    self.signal_work(attempt, signal);
                }
            }
            Fault::ExitWork { job, code } => {
                if let Some(attempt) = self.running_attempt(job) {
                    self.exit_work(attempt, attempt::exited(code));
                }
            }
            Fault::Silence { job, length } => self.weather.jobs[job].silent = now + length,
            Fault::Standstill { job, length } => self.weather.jobs[job].stands_still = now + length,
            Fault::SaysBad { job, broken: true, length } => self.weather.jobs[job].broken = now + length,
            Fault::SaysBad { job, broken: false, length } => self.weather.jobs[job].fails = now + length,
            Fault::Unkillable { job, length } => self.weather.jobs[job].unkillable = now + length,
            Fault::Reboot { down } => self.reboot(down),
            Fault::Suspend { length } => {
                self.host.sleep(length);
                self.reference.slept(now);
            }
            Fault::StepWall { forward, length } => self.host.step_wall(forward, length),
            Fault::SlowStore { length, by } => self.weather.slow_store = (now + length, by),
            Fault::FailStore { length } => self.weather.store_fails = now + length,
            Fault::FullDisk { length } => self.weather.disk_full = now + length,
            Fault::SlowPlugin { length, by } => self.weather.slow_plugin = (now + length, by),
            Fault::LyingPlugin { length, lie } => self.weather.lie = Some((now + length, lie)),
            Fault::BlindAgent { length } => self.weather.blind = now + length,
            Fault::Strangers { length } => self.come_strangers(length),
            Fault::Outage => self.kill_all(),
            Fault::Command { job, command } => self.type_command(job, command),
        }
    }

    fn crash_agent(&mut self, down: Duration) {
        if let Some(agent) = self.agent() {
            self.die(agent);
            self.after(down, Event::StartAgent);
        }
    }

    fn come_strangers(&mut self, length: Duration) {
        for _ in 0..10 {
            let process = self.host.start(Role::Stranger);
            self.after(length, Event::Ends { process });
        }
    }

    fn kill_all(&mut self) {
        for job in 0..self.specs.len() {
            self.supervisor_of(job).into_iter().for_each(|supervisor| self.die(supervisor));
            self.running_attempt(job).into_iter().for_each(|attempt| self.signal_work(attempt, 9));
        }
    }

    /// Everything that was broken is mended; what died stays dead.
    pub(crate) fn become_calm(&mut self) {
        self.note(|_| "CALM".to_owned());
        self.weather = Weather::new(self.specs.len());
        self.armed = None;
        let all: Vec<Process> = self.host.all().map(|(process, _)| process).collect();
        for process in all {
            while self.host.is_stopped(process) {
                self.go_on(process);
            }
        }
        let fenced = self.agents.iter().map(|agent| agent.process).filter(|agent| Some(*agent) != self.agent());
        for agent in fenced.collect::<Vec<_>>() {
            self.die(agent);
        }
        if self.agent().is_none() {
            self.after(Duration::ZERO, Event::StartAgent);
        }
    }

    /// The lock's file is gone while its holder is stopped: the next agent finds it free.
    fn lose_agent_lock(&mut self, length: Duration) {
        let Some(agent) = self.agent() else { return };
        self.had_two_agents = true;
        self.disk.agent_lock = None;
        self.stop_process(agent, length);
        self.after(Duration::ZERO, Event::StartAgent);
        self.after(length + ROTATED_FOR, Event::Ends { process: agent });
    }

    fn reboot(&mut self, down: Duration) {
        for (process, role) in self.host.reboot() {
            self.buried(process, role);
        }
        self.after(down, Event::StartAgent);
    }
}
