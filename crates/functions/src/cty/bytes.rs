//! Bytes: values of the opaque type `bytes`, and strings seen as bytes.

use std::sync::Arc;

use setpoint_value::{CallError, Opaque, Type, Value, function};

use super::{MODULE, count, not_null, refuse, type_at};

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
    signature = "func(buf opaque(bytes)) int",
    signature = "func(buf str) int",
    refine = not_null,
    example(call = r#"cty.bytes_len("añb")"#, result = "4")
)]
pub fn bytes_len(
    /// Raw bytes, or a text.
    buf: &Value,
) -> Result<Value, CallError> {
    content(buf).map(|bytes| count(bytes.len()))
}

/// `length` bytes from `offset` on.
#[function(
    signature = "func(buf str, offset int, length int) str",
    signature = "func(buf opaque(bytes), offset int, length int) opaque(bytes)",
    result_type = |arguments| Ok(type_at(arguments, 0)),
    refine = not_null,
    example(call = r#"cty.bytes_slice("hello", 1, 3)"#, result = r#""ell""#)
)]
pub fn bytes_slice(
    /// Raw bytes, or a text.
    buf: &Value,
    /// The first byte to take, counted from 0.
    offset: i64,
    /// The number of bytes.
    length: i64,
    ty: &Type,
) -> Result<Value, CallError> {
    let all = content(buf)?;
    let Ok(offset) = usize::try_from(offset) else {
        return refuse(1, "an offset is not negative");
    };
    let Ok(length) = usize::try_from(length) else {
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

fn content(buf: &Value) -> Result<&[u8], CallError> {
    match buf {
        Value::Str(text) => Ok(text.as_bytes()),
        Value::Opaque(opaque) => match opaque.content().downcast_ref::<Arc<[u8]>>() {
            Some(bytes) => Ok(bytes),
            None => refuse(0, "holds no bytes"),
        },
        other => refuse(0, format!("{} is not opaque(bytes)", other.ty())),
    }
}
