//! The `print` kind: shows a message.

use setpoint_engine::{Apply, Failure, Members, Resource, Text, async_trait};

/// A message, shown when it changes.
#[derive(Debug, Resource)]
#[resource(
    kind = "print",
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
}

#[async_trait]
impl Resource for Print {
    fn accepts(&self, member: &dyn Resource) -> bool {
        !self.refresh_only
            && member
                .downcast_ref::<Print>()
                .is_some_and(|print| !print.refresh_only)
    }

    fn members(&mut self) -> Option<&mut Members> {
        Some(&mut self.members)
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let shown = if self.refresh_only {
            apply.refresh_pending()
        } else {
            self.is_changed() || self.members.of::<Print>().any(|(_, member)| member.is_changed())
        };
        if !shown {
            if self.refresh_only && apply.may_repair() {
                self.seen = Some(self.msg.clone());
            }
            return Ok(());
        }
        let before = self.seen.as_ref().map(readable);
        if !apply.drift("msg", before, readable(&self.msg)) {
            return Ok(());
        }
        apply.display(hidden_if(apply.is_sensitive("msg"), &self.msg));
        self.seen = Some(self.msg.clone());
        for (id, member) in self.members.iter_mut() {
            let sensitive = member.is_sensitive("msg");
            if let Some(print) = member.resource_mut().downcast_mut::<Print>() {
                apply.display(format!("{}: {}", id.name, hidden_if(sensitive, &print.msg)));
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
