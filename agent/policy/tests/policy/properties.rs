//! Any order of events and times, also what no sane caller would tell.

use std::collections::BTreeMap;

use latido_policy::{
    Action, Epoch, Event, Found, JobSettings, Moment, Phase, Policy, Reason, SubjectId, Verdict, Want,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::any::{any_event, any_span, drain};
use crate::harness::seconds;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Whatever is told: epochs grow, nothing stays due, and nothing is launched after a stop.
    #[test]
    fn no_order_of_events_breaks_what_always_holds(story in vec((any_event(), any_span()), 1..60)) {
        let mut policy = Policy::new();
        let mut now = Moment::ORIGIN.after(seconds(1));
        let mut epochs: BTreeMap<SubjectId, Epoch> = BTreeMap::new();
        let mut stopped: BTreeMap<SubjectId, bool> = BTreeMap::new();
        for (event, span) in story {
            match event {
                Event::JobRemoved { subject } => {
                    stopped.remove(&subject);
                    epochs.remove(&subject);
                }
                Event::JobAdded { subject, found: Found { want, .. }, .. } | Event::WantChanged { subject, want } => {
                    let is_known = policy.subject(subject).is_some() || matches!(event, Event::JobAdded { .. });
                    match want {
                        Want::Stop => _ = is_known.then(|| stopped.insert(subject, true)),
                        Want::Resume => _ = stopped.insert(subject, false),
                        Want::Run | Want::Pause(_) => {}
                    }
                }
                Event::BudgetChanged { .. }
                | Event::AttemptStarted { .. }
                | Event::AttemptSeen { .. }
                | Event::LaunchRefused { .. }
                | Event::Heard { .. }
                | Event::ActivitySeen { .. }
                | Event::SupervisorGone { .. }
                | Event::AttemptEnded { .. }
                | Event::OrphanEnded { .. }
                | Event::StrategyAnswered { .. }
                | Event::LookFailed { .. }
                | Event::AttemptsMissed { .. }
                | Event::SeriesBegan { .. }
                | Event::LaunchSeen { .. }
                | Event::Registry(_)
                | Event::Check(_)
                | Event::Process(_)
                | Event::Alert(_)
                | Event::GapFound { .. }
                | Event::StoreFailed
                | Event::StoreRecovered
                | Event::BaselineRemembered { .. }
                | Event::RecoveryBegan
                | Event::RecoveryEnded
                | Event::Configured { .. }
                | Event::SlotConfigured { .. } => {}
            }
            policy.handle_event(event, now);
            let mut actions = drain(&mut policy);
            now = now.after(span);
            policy.handle_timeout(now);
            actions.extend(drain(&mut policy));
            prop_assert!(policy.poll_timeout().is_none_or(|next| next > now), "something stays due after {event:?}");
            policy.handle_timeout(now);
            prop_assert_eq!(drain(&mut policy), vec![], "a repeated call does something after {:?}", event);
            for action in actions {
                if let Action::Launch { subject, attempt, .. } = action {
                    let before = epochs.insert(subject, attempt.epoch);
                    prop_assert!(before.is_none_or(|before| attempt.epoch > before), "an epoch fell after {event:?}");
                    prop_assert!(!stopped.get(&subject).copied().unwrap_or(false), "launched after a stop: {event:?}");
                }
            }
        }
    }
}

/// Whose event it is that may bring back what has ended: somebody asks for it, or an attempt of it that nobody told of.
fn may_bring_back(event: &Event, subject: SubjectId) -> bool {
    match event {
        Event::JobAdded { subject: of, .. }
        | Event::JobRemoved { subject: of }
        | Event::AttemptStarted { subject: of, .. }
        | Event::AttemptSeen { subject: of, .. }
        | Event::LaunchSeen { subject: of, .. }
        | Event::AttemptEnded { subject: of, .. }
        | Event::WantChanged { subject: of, want: Want::Resume } => *of == subject,
        Event::WantChanged { .. }
        | Event::BudgetChanged { .. }
        | Event::AttemptsMissed { .. }
        | Event::SeriesBegan { .. }
        | Event::LaunchRefused { .. }
        | Event::Heard { .. }
        | Event::ActivitySeen { .. }
        | Event::SupervisorGone { .. }
        | Event::OrphanEnded { .. }
        | Event::StrategyAnswered { .. }
        | Event::LookFailed { .. }
        | Event::Registry(_)
        | Event::Alert(_)
        | Event::Check(_)
        | Event::Process(_)
        | Event::GapFound { .. }
        | Event::StoreFailed
        | Event::StoreRecovered
        | Event::BaselineRemembered { .. }
        | Event::RecoveryBegan
        | Event::RecoveryEnded
        | Event::Configured { .. }
        | Event::SlotConfigured { .. } => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// What has ended stays so, and no row of what runs says less than why: whoever is stale and runs on is told of with
    /// the silence, and runs on because nobody asked for more.
    #[test]
    fn what_has_ended_is_final_and_whoever_is_stale_is_ended_or_explained(
        story in vec((any_event(), any_span()), 1..60),
    ) {
        let mut policy = Policy::new();
        let mut now = Moment::ORIGIN.after(seconds(1));
        let mut settings: BTreeMap<SubjectId, JobSettings> = BTreeMap::new();
        for (event, span) in story {
            let before: BTreeMap<_, _> = policy.subjects().map(|view| (view.subject, view)).collect();
            if let Event::JobAdded { subject, settings: added, .. } = event {
                settings.insert(subject, added);
            }
            policy.handle_event(event, now);
            now = now.after(span);
            policy.handle_timeout(now);
            drain(&mut policy);
            for view in policy.subjects() {
                let was = before.get(&view.subject).filter(|_| !may_bring_back(&event, view.subject));
                if let Some(was) = was.filter(|was| was.phase == Phase::Ended) {
                    prop_assert_eq!((view.phase, view.attempt), (was.phase, was.attempt), "after {:?}", event);
                }
                if view.verdict == Verdict::Stale && view.phase == Phase::Running {
                    let is_explained = matches!(view.because, Reason::LeaseRanOut { silence, ttl } if silence >= ttl);
                    prop_assert!(is_explained, "{view:?} after {event:?}");
                    prop_assert!(!settings[&view.subject].resume.on.stale, "{view:?} runs on after {event:?}");
                }
            }
        }
    }
}
