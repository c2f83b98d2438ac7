//! A good history, and one that is broken in each way.

use super::*;

/// Changes, one a revision; a text behind `=` is set, `-` deletes, `@` is a lease.
fn history(lines: &[&str]) -> Vec<Recorded> {
    let change = |(index, line): (usize, &&str)| {
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (line.trim_end_matches('-'), None),
        };
        let lease = i64::from(key.ends_with('@'));
        Recorded {
            revision: index as u64 + 2,
            key: key.trim_end_matches('@').to_owned(),
            value,
            lease,
            at: Some(Duration::from_secs(index as u64)),
        }
    };
    lines.iter().enumerate().map(change).collect()
}

const GOOD: [&str; 13] = [
    "/members/a@={\"running\":null,\"state\":\"no-program\"}",
    "/deploy/1/payload=one",
    "/scheduler/election/7@=a",
    "/scheduler/hostname/a/leader@=maxCount=1&persist=false&strategy=rr",
    "/scheduler/schedule/leader=a",
    "/exported/*/a/file/x=data",
    "/scheduler/hostname/b/leader@=maxCount=1&persist=false&strategy=rr",
    "/deploy/2/payload=two",
    "/scheduler/hostname/a/leader-",
    "/scheduler/schedule/leader=b",
    "/strings/k=v",
    "/members/a@={\"running\":2,\"state\":\"right\"}",
    "/scheduler/election/7-",
];

fn wanted() -> Wanted {
    Wanted {
        published: [1, 2].into(),
        kept: vec!["/exported/".to_owned()],
        in_the_end: [
            ("/strings/k".to_owned(), Some("v".to_owned())),
            ("/strings/none".to_owned(), None),
        ]
        .into(),
        nothing_else_below: vec!["/strings/".to_owned()],
        right_in_the_end: ["a".to_owned()].into(),
        out_within: Some(Duration::from_secs(2)),
    }
}

fn ran(deploys: &[u64]) -> Vec<Ran> {
    let host = "a".to_owned();
    let deploys = deploys.to_vec();
    vec![Ran { host, deploys }]
}

/// What is broken in a history of these lines.
fn broken(lines: &[&str]) -> Vec<Broken> {
    check(&history(lines), &ran(&[1, 2]), &wanted())
}

/// The good one, with lines in the place of one.
fn with(at: usize, lines: &[&'static str]) -> Vec<Broken> {
    let mut all = GOOD.to_vec();
    all.splice(at..=at, lines.iter().copied());
    broken(&all)
}

#[test]
fn in_a_good_history_nothing_is_broken() {
    assert_eq!(broken(&GOOD), []);
}

#[test]
fn what_is_lost_or_out_of_order_is_found() {
    let mut swapped = history(&GOOD);
    swapped.swap(0, 10);
    let found = check(&swapped, &ran(&[1, 2]), &wanted());
    assert!(found.contains(&Broken::Disorder { revision: 3 }), "{found:?}");
    let found = with(7, &[]);
    assert!(found.contains(&Broken::Lost { deploy: 2 }), "{found:?}");
    assert_eq!(
        with(7, &["/deploy/2/payload=two", "/deploy/2/payload=other"]),
        [Broken::Rewritten {
            deploy: 2,
            revision: 10
        }]
    );
    assert!(with(7, &["/deploy/3/payload=two"]).contains(&Broken::Gap { deploy: 3 }));
    assert_eq!(
        with(10, &["/strings/k=v", "/exported/*/a/file/x-"]),
        [Broken::Deleted {
            key: "/exported/*/a/file/x".to_owned(),
            revision: 13
        }]
    );
}

#[test]
fn a_deploy_that_runs_twice_or_backwards_or_that_nobody_made_is_found() {
    let found = |deploys: &[u64]| check(&history(&GOOD), &ran(deploys), &wanted());
    let again = |deploy| Broken::RanAgain {
        host: "a".to_owned(),
        deploy,
    };
    assert_eq!(found(&[1, 2]), []);
    assert_eq!(found(&[1, 1, 2]), [again(1)]);
    assert_eq!(found(&[2, 1]), [again(1)]);
    let unknown = Broken::RanUnknown {
        host: "a".to_owned(),
        deploy: 3,
    };
    assert_eq!(found(&[2, 3]), [unknown]);
}

#[test]
fn a_wrong_election_is_found() {
    let namespace = || "leader".to_owned();
    assert_eq!(
        with(4, &["/scheduler/schedule/leader=a,b"]),
        [
            Broken::TooMany {
                namespace: namespace(),
                revision: 6
            },
            Broken::NeverStood {
                namespace: namespace(),
                host: "b".to_owned()
            }
        ]
    );
    let two = "/scheduler/hostname/a/leader@=maxCount=2&persist=false&strategy=rr";
    let found = with(3, &[two, "/scheduler/schedule/leader=a,a"]);
    let twice = Broken::Twice {
        namespace: namespace(),
        revision: 6,
    };
    assert_eq!(found, [twice]);
    assert!(with(2, &["/nothing="]).contains(&Broken::NobodyDecides {
        namespace: namespace(),
        revision: 6
    }));
    assert_eq!(
        with(9, &["/a=", "/b=", "/c=", "/scheduler/schedule/leader=b"]),
        [Broken::StaysChosen {
            namespace: namespace(),
            host: "a".to_owned(),
            after: Some(Duration::from_secs(4))
        }]
    );
    assert_eq!(
        with(9, &["/a="]),
        [Broken::StaysChosen {
            namespace: namespace(),
            host: "a".to_owned(),
            after: None
        }]
    );
}

#[test]
fn a_wrong_end_is_found() {
    let key = |key: &str| key.to_owned();
    assert_eq!(
        with(0, &["/members/a={}"]),
        [Broken::NoLease {
            key: key("/members/a")
        }]
    );
    let is = Some("w".to_owned());
    assert_eq!(
        with(10, &["/strings/k=w"]),
        [Broken::Wrong {
            key: key("/strings/k"),
            is
        }]
    );
    let is = Some("v".to_owned());
    assert_eq!(
        with(10, &["/strings/k=v", "/strings/other=v"]),
        [Broken::Wrong {
            key: key("/strings/other"),
            is
        }]
    );
    let says = Some("{\"running\":1,\"state\":\"right\"}".to_owned());
    assert_eq!(
        with(11, &["/members/a@={\"running\":1,\"state\":\"right\"}"]),
        [Broken::NotRight { host: key("a"), says }]
    );
}
