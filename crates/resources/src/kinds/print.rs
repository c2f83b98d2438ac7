//! The `print` kind: shows a message.

use setpoint_engine::{Apply, Effect, Failure, Grouping, Members, Resource, Text, async_trait};

/// A message, shown when it changes.
#[derive(Debug, Resource)]
#[resource(
    kind = "print",
    brings = nothing,
    receives,
    refreshable,
    autogroup,
    action(done = "printed", would = "print")
)]
pub(crate) struct Print {
    /// The message.
    msg: Text,
    /// Shows it when notified, and not when it changes. Such a resource is not grouped.
    refresh_only: bool,
    /// What was shown last.
    #[state]
    seen: Option<Text>,
    #[state]
    members: Members,
}

impl Print {
    fn is_changed(&self) -> bool {
        self.seen.as_ref() != Some(&self.msg)
    }

    /// Shows the message, unless that is not allowed now. What was shown before is no difference.
    fn show(&self, apply: &mut Apply<'_>) -> bool {
        let shows = if self.is_changed() || self.refresh_only {
            let before = self.seen.as_ref().map(readable);
            apply.act(Effect::Run, "msg", before, readable(&self.msg))
        } else {
            apply.may_repair()
        };
        if shows {
            apply.display(hidden_if(apply.is_sensitive("msg"), &self.msg));
        }
        shows
    }
}

#[async_trait]
impl Resource for Print {
    fn grouping(&self) -> Grouping {
        if self.refresh_only {
            Grouping::none()
        } else {
            Grouping::with_equals("print", "")
        }
    }

    fn members(&mut self) -> Option<&mut Members> {
        Some(&mut self.members)
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let is_shown = if self.refresh_only {
            apply.refresh_pending()
        } else {
            self.is_changed() || self.members.of::<Print>().any(|(_, member)| member.is_changed())
        };
        if !is_shown {
            if self.refresh_only && apply.may_repair() {
                self.seen = Some(self.msg.clone());
            }
            return Ok(());
        }
        if self.show(apply) {
            self.seen = Some(self.msg.clone());
        }
        for member in self.members.iter_mut() {
            let Some(print) = member.get::<Print>() else {
                continue;
            };
            if print.show(&mut apply.member(member))
                && let Some(print) = member.get_mut::<Print>()
            {
                print.seen = Some(print.msg.clone());
            }
        }
        Ok(())
    }
}

fn readable(text: &Text) -> String {
    if text.is_empty() {
        "<empty>".to_owned()
    } else {
        String::from_utf8_lossy(text.as_bytes()).into_owned()
    }
}

fn hidden_if(sensitive: bool, text: &Text) -> String {
    if sensitive {
        "(sensitive)".to_owned()
    } else {
        readable(text)
    }
}
