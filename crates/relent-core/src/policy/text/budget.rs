//! A budget as it is written: its kind, and the fields that this kind has.

use alloc::{format, string::String, vec::Vec};

use super::{Pairs, Scalar, read, write};
use crate::{
    budget::{BudgetPolicy, GrpcPolicy, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
    policy::Invalid,
};

/// The fields in the order in which they came. Not a struct: which fields there are depends on the kind, and a
/// refusal lists those of the kind alone.
pub(super) type BudgetText = Pairs<Scalar>;

/// The budget; what is left out is as in `base` if that is of the same kind, otherwise as in the kind's default.
/// The kind may be `none`.
pub(super) fn over(text: BudgetText, base: Option<&BudgetPolicy>) -> Result<Option<BudgetPolicy>, Invalid> {
    let mut fields = Fields { kind: NONE, written: text.0, known: Vec::new() };
    fields.kind = match (fields.take(KIND), base) {
        (Some(kind), _) => read::word("budget.kind", &format!("{kind}"), &KINDS, |kind| kind)?,
        (None, Some(base)) => base.kind(),
        (None, None) => {
            let reason = format!("it is missing; write one of {}", KINDS.join(", "));
            return Err(Invalid::new("budget.kind", reason));
        }
    };
    let budget = match fields.kind {
        LOAN => Some(BudgetPolicy::Loan(loan(&mut fields, base)?)),
        GRPC => Some(BudgetPolicy::Grpc(grpc(&mut fields, base)?)),
        RATIO => Some(BudgetPolicy::Ratio(ratio(&mut fields, base)?)),
        SHARE => Some(BudgetPolicy::Share(share(&mut fields, base)?)),
        QUOTA => Some(BudgetPolicy::Quota(quota(&mut fields, base)?)),
        _ => None,
    };
    fields.refuse_the_rest()?;
    Ok(budget)
}

fn loan(fields: &mut Fields, base: Option<&BudgetPolicy>) -> Result<LoanPolicy, Invalid> {
    let mut policy = match base {
        Some(BudgetPolicy::Loan(policy)) => *policy,
        _ => LoanPolicy::default(),
    };
    fields.set(&mut policy.earn_milli, "earn", read::thousandths)?;
    fields.set(&mut policy.gain_milli, "gain", read::thousandths)?;
    fields.set(&mut policy.floor_milli, "floor", read::thousandths)?;
    fields.set(&mut policy.per_call_milli, "per_call", read::thousandths)?;
    fields.set(&mut policy.start_milli, "start", read::thousandths)?;
    fields.set(&mut policy.charge_milli, "charge", read::thousandths)?;
    fields.set(&mut policy.throttled_milli, "throttled", read::thousandths)?;
    Ok(policy)
}

fn grpc(fields: &mut Fields, base: Option<&BudgetPolicy>) -> Result<GrpcPolicy, Invalid> {
    let mut policy = match base {
        Some(BudgetPolicy::Grpc(policy)) => *policy,
        _ => GrpcPolicy::default(),
    };
    let whole = |field: &str, written| read::count(field, written).map(|tokens| tokens.saturating_mul(1000));
    fields.set(&mut policy.max_milli, "max_tokens", whole)?;
    fields.set(&mut policy.ratio_milli, "token_ratio", |field, written| match written {
        Scalar::Text(_) => read::thousandths(field, written),
        number => GrpcPolicy::new(LARGE, &format!("{number}")).map(|policy| policy.ratio_milli),
    })?;
    Ok(policy)
}

fn ratio(fields: &mut Fields, base: Option<&BudgetPolicy>) -> Result<RatioPolicy, Invalid> {
    let mut policy = match base {
        Some(BudgetPolicy::Ratio(policy)) => *policy,
        _ => RatioPolicy::FINAGLE,
    };
    let mut of = policy.of;
    fields.set(&mut of, "of", |field, written| {
        read::word(field, &format!("{written}"), &[Of::Originals, Of::All], of_name)
    })?;
    if of != policy.of {
        policy = match of {
            Of::Originals => RatioPolicy::FINAGLE,
            Of::All => RatioPolicy::SRE,
        };
    }
    fields.set(&mut policy.share_milli, "share", read::thousandths)?;
    fields.set(&mut policy.window, "window", read::length)?;
    fields.set(&mut policy.floor_per_second, "floor_per_second", read::count)?;
    Ok(policy)
}

fn share(fields: &mut Fields, base: Option<&BudgetPolicy>) -> Result<SharePolicy, Invalid> {
    let mut policy = match base {
        Some(BudgetPolicy::Share(policy)) => *policy,
        _ => SharePolicy::default(),
    };
    fields.set(&mut policy.share_milli, "share", read::thousandths)?;
    fields.set(&mut policy.floor, "floor", read::count)?;
    Ok(policy)
}

fn quota(fields: &mut Fields, base: Option<&BudgetPolicy>) -> Result<QuotaPolicy, Invalid> {
    let mut policy = match base {
        Some(BudgetPolicy::Quota(policy)) => *policy,
        _ => QuotaPolicy::default(),
    };
    fields.set(&mut policy.capacity_milli, "capacity", read::thousandths)?;
    fields.set(&mut policy.transient_milli, "transient", read::thousandths)?;
    fields.set(&mut policy.timeout_milli, "timeout", read::thousandths)?;
    fields.set(&mut policy.throttled_milli, "throttled", read::thousandths)?;
    fields.set(&mut policy.first_success_milli, "first_success", read::thousandths)?;
    Ok(policy)
}

/// What was written, less what was read, and the names that were asked for.
struct Fields {
    kind: &'static str,
    written: Vec<(String, Scalar)>,
    known: Vec<&'static str>,
}

impl Fields {
    fn take(&mut self, name: &str) -> Option<Scalar> {
        let place = self.written.iter().position(|(written, _)| written == name)?;
        Some(self.written.remove(place).1)
    }

    fn set<T>(
        &mut self,
        slot: &mut T,
        name: &'static str,
        read: impl FnOnce(&str, Scalar) -> Result<T, Invalid>,
    ) -> Result<(), Invalid> {
        self.known.push(name);
        let written = self.take(name);
        read::set(slot, &format!("budget.{name}"), written, read)
    }

    fn refuse_the_rest(self) -> Result<(), Invalid> {
        let Some((name, _)) = self.written.first() else {
            return Ok(());
        };
        let has = match self.known.is_empty() {
            true => "none".into(),
            false => self.known.join(", "),
        };
        let reason = format!("a budget of kind {} has no such field; it has {has}", self.kind);
        Err(Invalid::new(format!("budget.{name}"), reason))
    }
}

pub(super) fn write(budget: &BudgetPolicy) -> BudgetText {
    let fields = match budget {
        BudgetPolicy::Loan(policy) => Vec::from([
            ("earn", write::thousandths(policy.earn_milli)),
            ("gain", write::thousandths(policy.gain_milli)),
            ("floor", write::thousandths(policy.floor_milli)),
            ("per_call", write::thousandths(policy.per_call_milli)),
            ("start", write::thousandths(policy.start_milli)),
            ("charge", write::thousandths(policy.charge_milli)),
            ("throttled", write::thousandths(policy.throttled_milli)),
        ]),
        BudgetPolicy::Grpc(policy) => Vec::from([
            ("max_tokens", write::thousandths(policy.max_milli)),
            ("token_ratio", write::thousandths(policy.ratio_milli)),
        ]),
        BudgetPolicy::Ratio(policy) => Vec::from([
            ("of", Scalar::Text(of_name(policy.of).into())),
            ("share", write::thousandths(policy.share_milli)),
            ("window", write::length(policy.window)),
            ("floor_per_second", write::count(policy.floor_per_second)),
        ]),
        BudgetPolicy::Share(policy) => Vec::from([
            ("share", write::thousandths(policy.share_milli)),
            ("floor", write::count(policy.floor)),
        ]),
        BudgetPolicy::Quota(policy) => Vec::from([
            ("capacity", write::thousandths(policy.capacity_milli)),
            ("transient", write::thousandths(policy.transient_milli)),
            ("timeout", write::thousandths(policy.timeout_milli)),
            ("throttled", write::thousandths(policy.throttled_milli)),
            ("first_success", write::thousandths(policy.first_success_milli)),
        ]),
    };
    let kind = (KIND, Scalar::Text(budget.kind().into()));
    Pairs(core::iter::once(kind).chain(fields).map(|(name, value)| (name.into(), value)).collect())
}

impl BudgetPolicy {
    /// The word for this kind in a policy's text.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Loan(_) => LOAN,
            Self::Grpc(_) => GRPC,
            Self::Ratio(_) => RATIO,
            Self::Share(_) => SHARE,
            Self::Quota(_) => QUOTA,
        }
    }
}

const fn of_name(of: Of) -> &'static str {
    match of {
        Of::Originals => "originals",
        Of::All => "all",
    }
}

const KINDS: [&str; 6] = [LOAN, GRPC, RATIO, SHARE, QUOTA, NONE];
const KIND: &str = "kind";
const LOAN: &str = "loan";
const GRPC: &str = "grpc";
const RATIO: &str = "ratio";
const SHARE: &str = "share";
const QUOTA: &str = "quota";
const NONE: &str = "none";

/// Any number of tokens that gRPC allows: here only the ratio is read.
const LARGE: u32 = 1000;
