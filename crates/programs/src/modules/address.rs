//! Addresses of modules: which ones are fetched, and how they are shown.

use setpoint_mcl::RemoteImport;

use super::Problem;

/// Ways by which modules come. Others that git knows (`ext`) run commands of whoever wrote the import.
const TRANSPORTS: [&str; 7] = ["https", "http", "git", "ssh", "git+ssh", "ssh+git", "file"];

/// Where a module comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// For git.
    pub(super) url: String,
    /// The same without a password, for everybody else.
    pub(super) shown: String,
    password: Option<String>,
}

impl Address {
    /// The address in an import, if it may be used.
    pub(super) fn of(import: &RemoteImport) -> Result<Address, Problem> {
        let url = import.import.split(['?', '#']).next().unwrap_or_default();
        let scheme = url.split(':').next().unwrap_or_default();
        if !TRANSPORTS.contains(&scheme) {
            let problem = Problem::new(format!("modules are not fetched by `{scheme}`"));
            return Err(problem.help("addresses begin with `https`, `http`, `git`, `ssh` or `file`"));
        }
        let Some(rest) = url[scheme.len()..].strip_prefix("://") else {
            let problem = Problem::new(format!("`{url}` is not the address of a repository"));
            return Err(problem.help(format!("write `{scheme}://HOST/PATH`")));
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.rsplit('@').next().unwrap_or_default();
        // Programs that git calls would take these for options.
        if [authority, host, path].iter().any(|part| part.starts_with('-')) {
            return Err(Problem::new(format!(
                "`{url}` is not the address of a repository: a part of it begins with `-`"
            )));
        }
        let is_taken = |part: &str| part.eq_ignore_ascii_case(".git") || part.starts_with(".setpoint-");
        if let Some(part) = import.module.split('/').find(|part| is_taken(part)) {
            return Err(Problem::new(format!(
                "no module can be kept in a directory of the name `{part}`"
            )));
        }
        let secret = authority
            .rsplit_once('@')
            .and_then(|(user, _)| user.split_once(':'))
            .map(|(_, password)| password.to_owned());
        let shown = match (&secret, authority.rsplit_once('@')) {
            (Some(_), Some((user, host))) => {
                let user = user.split(':').next().unwrap_or_default();
                format!("{scheme}://{user}@{host}/{path}")
            }
            _ => url.to_owned(),
        };
        Ok(Address {
            url: url.to_owned(),
            shown,
            password: secret.filter(|password| !password.is_empty()),
        })
    }

    /// The transports that git may use for it and for its submodules: those of this machine only where the module itself comes from
    /// there, so that no repository from elsewhere makes copies of what lies here.
    pub(super) fn transports(&self) -> &'static str {
        if self.url.starts_with("file:") {
            "https:http:git:ssh:git+ssh:ssh+git:file"
        } else {
            "https:http:git:ssh:git+ssh:ssh+git"
        }
    }

    /// A text of git's without the password.
    pub(super) fn without_password(&self, text: &str) -> String {
        match &self.password {
            Some(password) => text.replace(password.as_str(), "…"),
            None => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use setpoint_diagnostics::Span;

    fn address(import: &str, module: &str) -> Result<Address, Problem> {
        Address::of(&RemoteImport {
            import: import.into(),
            module: module.to_owned(),
            modules_directory: None,
            is_there: false,
            span: Span::new(setpoint_diagnostics::SourceMap::new().add("a", ""), 0, 0),
        })
    }

    #[test]
    fn addresses_that_run_commands_or_hide_options_are_refused() {
        for import in [
            "ext:///bin/sh",
            "ext::sh -c x/",
            "fd://17/x",
            "git:/x/",
            "ssh://-oProxyCommand=x/y/",
            "ssh://me@-oProxyCommand=x/y/",
            "git:///-x/",
        ] {
            assert!(address(import, "h/x/").is_err(), "{import}");
        }
        assert!(address("https://h/x/.git/hooks/", "h/x/.git/hooks/").is_err());
        assert!(address("https://h/x/.GIT/", "h/x/.GIT/").is_err());
        for import in [
            "https://h/x",
            "git:///srv/x/",
            "file:///srv/x/",
            "ssh://git@h:22/x/",
        ] {
            let found = address(import, "h/x/").unwrap();
            assert_eq!((found.url.as_str(), found.shown.as_str()), (import, import));
        }
    }

    #[test]
    fn a_password_is_not_shown_and_the_query_is_not_fetched() {
        let found = address("https://me:secret@h/x/?tag=1#a", "h/x/").unwrap();
        assert_eq!(found.url, "https://me:secret@h/x/");
        assert_eq!(found.shown, "https://me@h/x/");
        assert_eq!(
            found.without_password("to https://me:secret@h"),
            "to https://me:…@h"
        );
    }
}
