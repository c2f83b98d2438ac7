//! What must hold whatever happens, and what is told when it does not.

use std::fmt;

/// Something that holds in every step of every script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// No run starts before the watch of its resource is armed.
    Armed,
    /// No run starts while something that comes before it is not settled.
    Settled,
    /// No resource is run, brought in or taken away twice at once.
    Alone,
    /// No identity is brought in while another resource of it is there.
    Unique,
    /// No semaphore is held more often than it may be.
    Semaphores,
    /// No more runs at once than allowed.
    Jobs,
    /// No run starts in a pause.
    Pause,
    /// What may not be repaired is not repaired.
    Noop,
    /// A port is free before another resource that wants one comes.
    Port,
    /// Only what the newest program wants is started.
    Newest,
    /// Every event leads to a run that starts after it, or its resource has failed, is blocked or is gone.
    Answered,
    /// A notification is served by a successful run, or its edge is gone.
    Refresh,
    /// What is received is what was sent last.
    Received,
    /// In the end everything is as the program wants it.
    Right,
    /// What is wrong and stays so is told as failing or blocked.
    Told,
    /// What left the program is undone, once, to what was there before the program had it.
    Undone,
    /// What is right is exported as it is, and nothing else is: nothing under noop, and nothing is taken back because a process ends.
    Exported,
    /// Events are numbered without gaps, and their time never goes back.
    Numbered,
    /// The machine waits for nothing that has passed, and comes to an end when nothing happens.
    Ends,
    /// A process that is asked to stop ends.
    Stops,
    /// The machine's own tables agree with each other.
    Consistent,
    /// Nothing panics.
    Calm,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Armed => "no run starts before the watch is armed",
            Rule::Settled => "no run starts before its predecessors are settled",
            Rule::Alone => "nothing happens to one resource twice at once",
            Rule::Unique => "an identity has one resource",
            Rule::Semaphores => "no semaphore is held too often",
            Rule::Jobs => "no more runs at once than allowed",
            Rule::Pause => "no run starts in a pause",
            Rule::Noop => "noop repairs nothing",
            Rule::Port => "a port is free before it is taken",
            Rule::Newest => "only what the newest program wants is started",
            Rule::Answered => "every event leads to a run",
            Rule::Refresh => "no notification is lost",
            Rule::Received => "what is received is what was sent last",
            Rule::Right => "in the end all is right",
            Rule::Told => "what is wrong is told",
            Rule::Undone => "what left is undone once",
            Rule::Exported => "what is exported is what there is",
            Rule::Numbered => "events are numbered without gaps",
            Rule::Ends => "nothing goes on for ever",
            Rule::Stops => "stopping ends",
            Rule::Consistent => "the machine's tables agree",
            Rule::Calm => "nothing panics",
        })
    }
}

/// A rule that was broken, before it is known in which script.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) rule: Rule,
    pub(crate) what: String,
}

/// Ends the script unless a rule holds.
pub(crate) fn hold(rule: Rule, holds: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds {
        Ok(())
    } else {
        Err(Broken { rule, what: what() })
    }
}
