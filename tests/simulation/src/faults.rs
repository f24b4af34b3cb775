//! What goes wrong, and when: a plan made from the seed alone, so that any part of it can be left out.

use std::time::Duration;

use latido_policy::Proposal;

use crate::random::Random;

/// Something that happens from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Beats of a job do not arrive.
    LoseBeats { job: usize, length: Duration },
    /// What supervisors tell the agent comes late and out of order.
    LateWord { length: Duration, by: Duration },
    /// What supervisors tell the agent comes twice.
    DoubleWord { length: Duration },
    /// The agent is killed and started again.
    CrashAgent { down: Duration },
    /// The agent gets SIGSTOP, and goes on later.
    StopAgent { length: Duration },
    /// Whoever takes the n-th recorded step from here dies there, before it or after it.
    CrashAtStep { steps: u32, before: bool },
    /// Another agent is started beside the one that runs.
    SecondAgent,
    /// The agent loses its lock without knowing, and another one starts.
    LoseAgentLock { length: Duration },
    /// A supervisor is killed.
    KillSupervisor { job: usize },
    /// A supervisor gets SIGSTOP, and goes on later.
    StopSupervisor { job: usize, length: Duration },
    /// A job's process is killed with a signal.
    KillWork { job: usize, signal: i32 },
    /// A job's process exits.
    ExitWork { job: usize, code: i32 },
    /// A job says nothing for a while.
    Silence { job: usize, length: Duration },
    /// A job beats without progress.
    Standstill { job: usize, length: Duration },
    /// A job says of itself that it fails, or that it is broken.
    SaysBad { job: usize, broken: bool, length: Duration },
    /// A job's process does not end by any signal.
    Unkillable { job: usize, length: Duration },
    /// All processes are gone; the boot id changes.
    Reboot { down: Duration },
    /// The machine sleeps.
    Suspend { length: Duration },
    /// The calendar moves.
    StepWall { forward: bool, length: Duration },
    /// Each commit takes so long.
    SlowStore { length: Duration, by: Duration },
    /// The store takes nothing.
    FailStore { length: Duration },
    /// No file can be written.
    FullDisk { length: Duration },
    /// The strategy takes so long for an answer.
    SlowPlugin { length: Duration, by: Duration },
    /// The strategy lies.
    LyingPlugin { length: Duration, lie: Lie },
    /// Looks at processes fail.
    BlindAgent { length: Duration },
    /// Foreign processes take the pids that are free.
    Strangers { length: Duration },
    /// Everything dies at once.
    Outage,
    /// A person does something.
    Command { job: usize, command: Command },
}

/// How a strategy lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// it traps
    Traps,
    /// it does not answer until its deadline ends it
    NeverAnswers,
    /// it answers twice, and differently
    AnswersTwice,
    /// it answers about another attempt
    AboutAnother,
    /// it proposes this, whatever was asked
    Proposes(Proposal),
}

/// What a person types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Stop,
    Resume,
    /// Resumes without an agent, also where one runs.
    ResumeByHand,
    Pause(Option<Duration>),
    Unpause,
    Remove,
    /// Makes the job again where it was removed.
    Run,
}

/// A fault and its moment, in time since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) at: Duration,
    pub(crate) fault: Fault,
}

/// All that happens from outside in the time until `calm_at`.
pub(crate) fn plan(seed: u64, jobs: usize, calm_at: Duration) -> Vec<Planned> {
    let mut random = Random::new(seed, "faults");
    // Many runs with few faults show more than few runs in which nothing works at all.
    let count = 1 + random.below(4) * random.below(8);
    let allowed = random.below(1 << 32);
    let mut plan: Vec<Planned> = (0..count)
        .map(|_| Planned { at: random.between(Duration::ZERO, calm_at), fault: any_fault(&mut random, jobs, allowed) })
        .collect();
    plan.extend(quiet_pause(seed, jobs, calm_at));
    plan.sort_by_key(|planned| planned.at);
    plan
}

/// So many seeds in a hundred have a pause in which its job is silent, as one is that somebody maintains. Chance alone makes
/// hardly any.
const QUIET_PAUSES: u64 = 15;

/// A pause, by its end or by hand, and a silence that goes on a little after it.
fn quiet_pause(seed: u64, jobs: usize, calm_at: Duration) -> Vec<Planned> {
    let mut random = Random::new(seed, "pauses");
    if !random.chance(QUIET_PAUSES) {
        return Vec::new();
    }
    let job = usize::try_from(random.below(jobs as u64)).unwrap_or(0);
    let (at, length) = (random.between(Duration::ZERO, calm_at), random.seconds(30, 600));
    let (by_hand, longer) = (random.chance(50), random.seconds(1, 60));
    let command = |command| Fault::Command { job, command };
    let mut plan = vec![
        Planned { at, fault: command(Command::Pause((!by_hand).then_some(length))) },
        Planned { at, fault: Fault::Silence { job, length: length + longer } },
    ];
    plan.extend(by_hand.then(|| Planned { at: at + length, fault: command(Command::Unpause) }));
    plan
}

/// A fault of the kinds that this seed has: a run with one kind of fault finds what a mixture covers up.
fn any_fault(random: &mut Random, jobs: usize, allowed: u64) -> Fault {
    const KINDS: u64 = 28;
    const TRIES: u32 = 4;
    let mut kind = random.below(KINDS);
    for _ in 0..TRIES {
        if allowed & (1 << kind) != 0 {
            break;
        }
        kind = random.below(KINDS);
    }
    fault(random, jobs, kind)
}

fn fault(random: &mut Random, jobs: usize, kind: u64) -> Fault {
    let job = usize::try_from(random.below(jobs as u64)).unwrap_or(0);
    let short = random.seconds(0, 30);
    let length = random.seconds(1, 900);
    match kind {
        0 => Fault::LoseBeats { job, length },
        1 => Fault::LateWord { length, by: short },
        2 => Fault::DoubleWord { length },
        3 => Fault::CrashAgent { down: length },
        4 => Fault::StopAgent { length },
        5 | 6 => Fault::CrashAtStep { steps: u32::try_from(random.below(12)).unwrap_or(0), before: random.chance(50) },
        7 => Fault::SecondAgent,
        8 => Fault::LoseAgentLock { length },
        9 => Fault::KillSupervisor { job },
        10 => Fault::StopSupervisor { job, length },
        11 => Fault::KillWork { job, signal: random.pick(&[9, 9, 15, 11]) },
        12 => Fault::ExitWork { job, code: random.pick(&[0, 1, 137]) },
        13 => Fault::Silence { job, length },
        14 => Fault::Standstill { job, length },
        15 => Fault::SaysBad { job, broken: random.chance(50), length },
        16 => Fault::Unkillable { job, length },
        17 => Fault::Reboot { down: short },
        18 => Fault::Suspend { length: random.seconds(1, 20_000) },
        19 => Fault::StepWall { forward: random.chance(50), length: random.seconds(1, 20_000) },
        20 => Fault::SlowStore { length, by: random.seconds(0, 12) },
        21 => Fault::FailStore { length },
        22 => Fault::FullDisk { length },
        23 => Fault::SlowPlugin { length, by: short },
        24 => Fault::LyingPlugin { length, lie: lie(random) },
        25 => Fault::BlindAgent { length: short },
        26 => random.pick(&[Fault::Strangers { length }, Fault::Outage]),
        _ => Fault::Command { job, command: command(random) },
    }
}

fn lie(random: &mut Random) -> Lie {
    random.pick(&[
        Lie::Traps,
        Lie::NeverAnswers,
        Lie::AnswersTwice,
        Lie::AboutAnother,
        Lie::Proposes(Proposal::Hold),
        Lie::Proposes(Proposal::GiveUp),
        Lie::Proposes(Proposal::Wait(Duration::ZERO)),
        Lie::Proposes(Proposal::Wait(Duration::from_secs(300))),
    ])
}

fn command(random: &mut Random) -> Command {
    let pause = random.seconds(1, 600);
    random.pick(&[
        Command::Stop,
        Command::Stop,
        Command::Resume,
        Command::Resume,
        Command::ResumeByHand,
        Command::Pause(Some(pause)),
        Command::Pause(None),
        Command::Unpause,
        Command::Remove,
        Command::Run,
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_of_fault_and_every_command_strikes() {
        let mut names = BTreeSet::new();
        for seed in 0..2000 {
            for Planned { fault, .. } in plan(seed, 2, Duration::from_secs(600)) {
                let text = format!("{fault:?}");
                let word = |text: &str| text.split([' ', '{', '(', ',']).next().unwrap_or_default().to_owned();
                names.insert(word(&text));
                names.extend(text.split_once("command: ").map(|(_, command)| word(command)));
                names.extend(text.split_once("lie: ").map(|(_, lie)| word(lie)));
            }
        }
        for name in "LoseBeats LateWord DoubleWord CrashAgent StopAgent CrashAtStep SecondAgent LoseAgentLock \
                     KillSupervisor StopSupervisor KillWork ExitWork Silence Standstill SaysBad Unkillable Reboot Suspend \
                     StepWall SlowStore FailStore FullDisk SlowPlugin LyingPlugin BlindAgent Strangers Outage Command \
                     Stop Resume ResumeByHand Pause Unpause Remove Run \
                     Traps NeverAnswers AnswersTwice AboutAnother Proposes"
            .split_whitespace()
        {
            assert!(names.contains(name), "{name} never strikes: {names:?}");
        }
    }

    #[test]
    fn one_fault_more_moves_no_other_stream() {
        let (mut one, mut other) = (Random::new(7, "delay"), Random::new(7, "delay"));
        Random::new(7, "faults").below(9);
        assert_eq!(one.below(1 << 40), other.below(1 << 40));
        assert_ne!(Random::new(7, "delay").below(1 << 40), Random::new(7, "faults").below(1 << 40));
    }
}
