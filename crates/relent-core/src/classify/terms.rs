//! What a policy says of the calls on a route, beside what their answers mean.

use core::time::Duration;

use super::{Classification, Route};
use crate::history::{History, Idempotency};

/// The terms of the calls on a route.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// Whether they may be repeated, if a rule says so.
    pub repeat: Option<Idempotency>,
    /// How long after their beginning an answer is still of use, if a rule says so.
    pub fresh_for: Option<Duration>,
}

impl Classification {
    /// What the rules say of the calls on a route: for each of the two, the first that matches and says it.
    #[inline]
    pub fn terms(&self, route: Route<'_>) -> Terms {
        if self.routes.is_empty() { Terms::default() } else { self.terms_of(route) }
    }

    /// [`Classification::terms`] and [`Terms::apply`] in one, for a call that begins: most policies have no rule.
    #[inline(always)]
    pub fn apply_terms(&self, route: Route<'_>, said: Option<Idempotency>, history: &mut History) {
        match self.routes.is_empty() {
            true => Terms::default().apply(said, history),
            false => self.terms_of(route).apply(said, history),
        }
    }

    #[inline(never)]
    fn terms_of(&self, route: Route<'_>) -> Terms {
        self.routes.iter().filter(|rule| rule.matches(route)).fold(Terms::default(), |terms, rule| Terms {
            repeat: terms.repeat.or(rule.repeat),
            fresh_for: terms.fresh_for.or(rule.fresh_for),
        })
    }
}

impl Terms {
    /// Puts the terms into the history of a call that begins.
    ///
    /// # Ordering
    ///
    /// Whether it may be repeated: a rule that says never, then what its caller said, then any other rule, then
    /// the policy's `repeat`, which the history begins with. The end of its use is a total time-out that is sooner.
    #[inline]
    pub fn apply(self, said: Option<Idempotency>, history: &mut History) {
        let forbidden = self.repeat.filter(|repeat| *repeat == Idempotency::Never);
        if let Some(repeat) = forbidden.or(said).or(self.repeat) {
            history.idempotency = repeat;
        }
        if let Some(length) = self.fresh_for {
            let stale = history.started.after(length);
            let total = history.deadlines.total;
            history.deadlines.total = Some(total.map_or(stale, |total| total.min(stale)));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{
        classify::{RouteRule, Table},
        policy::Policy,
        time::Timestamp,
    };

    fn rule(path: &str, repeat: Option<Idempotency>, fresh_for: Option<u64>) -> RouteRule {
        RouteRule { repeat, fresh_for: fresh_for.map(Duration::from_secs), ..RouteRule::on(path) }
    }

    #[test]
    fn the_first_route_that_says_it_sets_each_term() {
        let mut classify = Classification::new(Table::Documents);
        classify.routes = vec![
            rule("/prices/live", None, Some(2)),
            rule("/prices/*", Some(Idempotency::Never), Some(9)),
            rule("*", Some(Idempotency::Safe), None),
        ];
        for (path, repeat, fresh_for) in [
            ("/prices/live", Some(Idempotency::Never), Some(Duration::from_secs(2))),
            ("/prices/old", Some(Idempotency::Never), Some(Duration::from_secs(9))),
            ("/orders", Some(Idempotency::Safe), None),
        ] {
            assert_eq!(classify.terms(Route { method: "GET", path }), Terms { repeat, fresh_for }, "{path}");
        }
    }

    #[test]
    fn a_rule_that_forbids_comes_before_the_caller_and_the_caller_before_any_other() {
        use Idempotency::{Keyed, Never, Safe, Unsafe};
        for (rule, said, applied) in [
            (None, None, Unsafe),
            (Some(Safe), None, Safe),
            (None, Some(Keyed), Keyed),
            (Some(Safe), Some(Unsafe), Unsafe),
            (Some(Never), Some(Safe), Never),
            (Some(Safe), Some(Never), Never),
        ] {
            let mut history = Policy::live().begin(7, Timestamp::ZERO, None, None);
            Terms { repeat: rule, fresh_for: None }.apply(said, &mut history);
            assert_eq!(history.idempotency, applied, "{rule:?} {said:?}");
        }
    }

    #[test]
    fn what_is_fresh_for_a_while_ends_no_later_than_the_policy_says() {
        for (fresh_for, total, ends) in [(2, Some(5), 2), (9, Some(5), 5), (9, None, 9)] {
            let policy = Policy { total_timeout: total.map(Duration::from_secs), ..Policy::live() };
            let mut history = policy.begin(7, Timestamp::from_secs(100), None, None);
            Terms { fresh_for: Some(Duration::from_secs(fresh_for)), repeat: None }.apply(None, &mut history);
            assert_eq!(
                history.deadlines.total,
                Some(Timestamp::from_secs(100 + ends)),
                "{fresh_for} {total:?}"
            );
        }
    }
}
