//! What a policy's own rules of classification must keep.

use alloc::{format, string::String};

use super::Invalid;
use crate::classify::{Answer, Classification, ErrorClass, RouteRule, Rules};

pub(super) fn check(classify: &Classification) -> Result<(), Invalid> {
    rules("classify", &classify.rules)?;
    for (number, route) in (1..).zip(&classify.routes) {
        let field = format!("classify.route[{number}]");
        path(&field, route)?;
        rules(&field, &route.rules)?;
    }
    Ok(())
}

fn path(field: &str, route: &RouteRule) -> Result<(), Invalid> {
    let field = |name: &str| format!("{field}.{name}");
    if route.method.as_deref().is_some_and(str::is_empty) {
        return Err(Invalid::new(field("method"), "it is empty; leave it out for every method"));
    }
    let path = &*route.path;
    let fixed = path.strip_suffix('*').unwrap_or(path);
    if fixed.contains('*') {
        let reason = format!("\"{path}\": a * matches any rest and stands only at the end");
        return Err(Invalid::new(field("path"), reason));
    }
    if path != "*" && !path.starts_with('/') {
        let reason = format!("\"{path}\" matches no path; it begins with /, or is * for every path");
        return Err(Invalid::new(field("path"), reason));
    }
    let no_rules = route.rules.statuses.is_empty() && route.rules.errors.is_empty();
    match no_rules && route.repeat.is_none() && route.fresh_for.is_none() {
        true => {
            let reason = "a route without rules does nothing; give it status, error, repeat or fresh_for";
            Err(Invalid::new(field("status"), reason))
        }
        false => Ok(()),
    }
}

fn rules(field: &str, rules: &Rules) -> Result<(), Invalid> {
    for (index, &(low, high, answer)) in rules.statuses.iter().enumerate() {
        let refused = |reason: String| Err(Invalid::new(format!("{field}.status.{low}-{high}"), reason));
        if low > high {
            return refused(format!("it ends before it begins; write {high}-{low}"));
        }
        if low < 100 || high > 999 {
            return refused(String::from("the statuses are 100 to 999"));
        }
        let earlier = &rules.statuses[..index];
        if let Some((_, _, other)) = earlier.iter().find(|(from, to, _)| (*from, *to) == (low, high)) {
            return refused(format!("it is both {} and {}; keep one", other.name(), answer.name()));
        }
    }
    for (index, &(class, answer)) in rules.errors.iter().enumerate() {
        let refused = |reason: &str| Err(Invalid::new(format!("{field}.error.{}", class.name()), reason));
        if class == ErrorClass::Lost {
            return refused("nobody saw how the attempt ended, so no rule decides it; retry.max_losses does");
        }
        if class == ErrorClass::OwnFault {
            return refused("a fault of our own says nothing about the dependency, so no rule decides it");
        }
        if answer == Answer::Success {
            return refused("an attempt without an answer is no success; write not_now, throttled or no");
        }
        if rules.errors[..index].iter().any(|(earlier, _)| *earlier == class) {
            return refused("it has two answers; keep one");
        }
    }
    Ok(())
}
