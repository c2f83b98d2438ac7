//! Any line of a client on the control socket: it is a request, or nothing, or is refused with a sentence and a code; and a refusal names the
//! request that it is of.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|line: &[u8]| {
    let Some(refused) = setpoint_agent::refuse_request(line) else {
        return;
    };
    let answer: Value = serde_json::from_str(&refused).expect("an answer is one JSON object");
    assert_eq!(answer["answer"], "error");
    assert!(!answer["message"].as_str().expect("a sentence").is_empty());
    assert!(answer["code"].is_string() && !refused.contains('\n'));
    let asked = serde_json::from_slice::<Value>(line).ok().and_then(|request| request["id"].as_u64());
    if let Some(id) = answer["id"].as_u64() {
        assert_eq!(asked, Some(id));
    }
});
