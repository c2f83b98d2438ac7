//! Random data for tests of laws.

use std::sync::Arc;

use proptest::prelude::*;
use setpoint_cf_names::datum::{Datum, Dict, InstanceId, UnknownId};

/// Data without unknowns. Few different ones, so that equal ones meet.
pub(crate) fn known() -> impl Strategy<Value = Datum> {
    nested(scalar().boxed())
}

/// Any data but deferred references.
pub(crate) fn datum() -> impl Strategy<Value = Datum> {
    nested(prop_oneof![scalar(), (0..3u32).prop_map(|id| Datum::Unknown(UnknownId(id)))].boxed())
}

/// Data that are no list or dict, and are known.
pub(crate) fn scalar() -> impl Strategy<Value = Datum> {
    prop_oneof![
        Just(Datum::Null),
        any::<bool>().prop_map(Datum::Bool),
        (-2..3i64).prop_map(Datum::Int),
        prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(1.0),
            Just(1.5),
            Just(9_007_199_254_740_992.0)
        ]
        .prop_map(Datum::Float),
        Just(Datum::Int(9_007_199_254_740_993)),
        "[ab'\"\\\\é\n]{0,3}".prop_map(Datum::text),
        (0..3u32).prop_map(|id| Datum::Instance(InstanceId(id))),
    ]
}

fn nested(leaf: BoxedStrategy<Datum>) -> impl Strategy<Value = Datum> {
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| Datum::List(items.into())),
            prop::collection::vec(("[ab]", inner), 0..3).prop_map(|entries| {
                let entries = entries.into_iter().map(|(key, value)| (Arc::from(key), value));
                Datum::Dict(Arc::new(entries.collect::<Dict>()))
            }),
        ]
    })
}
