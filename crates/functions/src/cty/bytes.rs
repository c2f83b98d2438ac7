//! Bytes: values of the opaque type `bytes`, and strings seen as bytes.

use std::sync::Arc;

use setpoint_value::{CallError, Opaque, Type, Value, function};

use super::{MODULE, argument, count, not_null, refuse, type_at, whole_number};

/// The name of the opaque type.
const BYTES: &str = "bytes";

/// Bytes as an opaque value.
#[must_use]
pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Value {
    let bytes: Arc<[u8]> = bytes.into();
    Value::Opaque(Opaque::new(BYTES, Arc::new(bytes)))
}

/// How many bytes there are.
#[function(
    raw,
    signature = "func(buf opaque(bytes)) int",
    signature = "func(buf str) int",
    parameters(
        /// Raw bytes, or a text.
        buf,
    ),
    refine = not_null,
    example(call = r#"cty.bytes_len("añb")"#, result = "4")
)]
pub fn bytes_len(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    content(arguments).map(|bytes| count(bytes.len()))
}

/// `length` bytes from `offset` on.
#[function(
    raw,
    signature = "func(buf str, offset int, length int) str",
    signature = "func(buf opaque(bytes), offset int, length int) opaque(bytes)",
    parameters(
        /// Raw bytes, or a text.
        buf,
        /// The first byte to take, counted from 0.
        offset,
        /// How many bytes.
        length,
    ),
    result_type = |arguments| Ok(type_at(arguments, 0)),
    refine = not_null,
    example(call = r#"cty.bytes_slice("hello", 1, 3)"#, result = r#""ell""#)
)]
pub fn bytes_slice(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let all = content(arguments)?;
    let Ok(offset) = usize::try_from(whole_number(arguments, 1)?) else {
        return refuse(1, "an offset is not negative");
    };
    let Ok(length) = usize::try_from(whole_number(arguments, 2)?) else {
        return refuse(2, "a length is not negative");
    };
    let Some(end) = offset.checked_add(length).filter(|end| *end <= all.len()) else {
        return refuse(
            2,
            format!("the slice ends beyond the {} bytes that there are", all.len()),
        );
    };
    let part = &all[offset..end];
    Ok(if *ty == Type::Str {
        Value::str(part)
    } else {
        bytes(part)
    })
}

fn content(arguments: &[Value]) -> Result<&[u8], CallError> {
    match argument(arguments, 0)? {
        Value::Str(text) => Ok(text.as_bytes()),
        Value::Opaque(opaque) => match opaque.content().downcast_ref::<Arc<[u8]>>() {
            Some(bytes) => Ok(bytes),
            None => refuse(0, "holds no bytes"),
        },
        other => refuse(0, format!("{} is not opaque(bytes)", other.ty())),
    }
}
