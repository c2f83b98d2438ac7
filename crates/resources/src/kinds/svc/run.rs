//! A run: what the manager says of a unit is compared with what shall be, and brought there in the order in which the steps need each other.
//!
//! Unmask, enable or disable, start or stop, serve a notification, mask. After each change of links the manager reads its files; after each job the unit is read again, for
//! `done` does not mean that a service is still there a moment later.

use std::time::Duration;

use setpoint_engine::{Apply, Attempting, Effect, Failure, Level, Resource as _, WantedOrder};
use setpoint_host::systemd::{ActiveState, ServiceManager, Unit, UnitFileChanges, UnitName};
use tokio::task::block_in_place;

use super::{OnRefresh, State, Svc, init_script};
use crate::unit_control::{self, Startup};

/// How long a service that was just started is given to show that it does not end at once.
const UNTIL_IT_LIVES: Duration = Duration::from_millis(150);

struct Run<'a, 'b> {
    svc: &'a Svc,
    manager: &'a ServiceManager,
    name: UnitName,
    /// As it was read last.
    unit: Unit,
    apply: &'a mut Apply<'b>,
}

/// Brings a service into its state.
pub(super) async fn run(svc: &Svc, manager: &ServiceManager, apply: &mut Apply<'_>) -> Result<(), Failure> {
    let name = UnitName::service(&svc.name).attempting("use the name", &svc.name)?;
    let unit = read(svc, manager, &name).await?;
    let mut run = Run {
        svc,
        manager,
        name,
        unit,
        apply,
    };
    if !run.unit.is_found() && svc.masked != Some(true) {
        return run.not_found();
    }
    run.unmask().await?;
    run.startup().await?;
    if !run.state().await? && run.apply.refresh_pending() {
        run.refresh().await?;
    }
    run.mask().await
}

async fn read(svc: &Svc, manager: &ServiceManager, name: &UnitName) -> Result<Unit, Failure> {
    let with_files = svc.startup.is_some() || svc.masked.is_some();
    let unit = manager.unit(name, with_files).await;
    unit.attempting("ask systemd about", name)
}

impl Run<'_, '_> {
    async fn read(&mut self) -> Result<(), Failure> {
        self.unit = read(self.svc, self.manager, &self.name).await?;
        Ok(())
    }

    fn failure(&self, attempted: &'static str) -> Failure {
        Failure::new(attempted).on(&self.name)
    }

    /// There is no unit of this name. That is right if nothing needs one; and an earlier resource may bring it.
    fn not_found(&mut self) -> Result<(), Failure> {
        let running = *self.svc.state == Some(State::Running);
        let enabled = *self.svc.startup == Some(Startup::Enabled);
        let fails = match self.apply.is_plan() {
            true => !self.is_foreseen(),
            false => self.apply.may_repair(),
        };
        if (running || enabled) && fails {
            let directory = if self.svc.session {
                "`~/.config/systemd/user` for one"
            } else {
                "`/etc/systemd/system` for one"
            };
            let why = format!("systemd finds no unit file of this name, in {directory}");
            return Err(self.failure("find").because(why));
        }
        if enabled {
            let _ = self.apply.drift("startup", "not found", "enabled");
        }
        if running {
            let _ = self.apply.drift("state", "not found", "running");
        }
        Ok(())
    }

    /// Whether an earlier resource creates a file of the unit, or may.
    fn is_foreseen(&mut self) -> bool {
        let wanted = self.svc.wanted().into_iter();
        let first = wanted.filter(|wanted| wanted.order == WantedOrder::FoundFirst);
        let what = format!("the unit {}", self.name);
        let mut files = first.flat_map(|wanted| wanted.identities);
        files.any(|file| self.apply.foresees(&file, what.as_str()))
    }

    async fn unmask(&mut self) -> Result<(), Failure> {
        if self.svc.masked != Some(false) || !self.unit.file_state.starts_with("masked") {
            return Ok(());
        }
        let is = self.unit.file_state.clone();
        if self.apply.drift("masked", is, "not masked") {
            for runtime in [false, true] {
                let changes = self.manager.unmask(&self.name, runtime).await;
                self.files_changed(changes, "unmask").await?;
            }
            if self.unit.file_state.starts_with("masked") {
                let why = format!("systemd says that it is `{}` all the same", self.unit.file_state);
                return Err(self.failure("unmask").because(why));
            }
        }
        Ok(())
    }

    async fn startup(&mut self) -> Result<(), Failure> {
        let Some(wanted) = *self.svc.startup else {
            return Ok(());
        };
        if self.unit.file_state == "generated"
            && let Some(is_enabled) = block_in_place(|| init_script::is_enabled(&self.svc.name))
        {
            return self.startup_of_script(wanted, is_enabled).await;
        }
        let Some(is) = wanted.unless_right(&self.unit) else {
            return Ok(());
        };
        let (word, attempted) = wanted.word_and_verb();
        if let Some(why) = self.cannot(wanted)
            && self.apply.may_repair()
        {
            return Err(self.failure(attempted).because(why));
        }
        if !self.apply.drift("startup", is.clone(), word) {
            return Ok(());
        }
        let changes = match wanted {
            Startup::Enabled => self.manager.enable(&self.name).await,
            Startup::Disabled => self.manager.disable(&self.name, is.ends_with("-runtime")).await,
        };
        self.files_changed(changes, attempted).await?;
        match wanted.unless_right(&self.unit) {
            None => Ok(()),
            Some(is) => {
                let why = format!("systemd says that it is `{is}` all the same");
                Err(self.failure(attempted).because(why))
            }
        }
    }

    /// The same for a script in `/etc/init.d`.
    async fn startup_of_script(&mut self, wanted: Startup, is_enabled: bool) -> Result<(), Failure> {
        let (word, attempted) = wanted.word_and_verb();
        let is = if is_enabled { "enabled" } else { "disabled" };
        if is == word || !self.apply.drift("startup", is, word) {
            return Ok(());
        }
        init_script::set(&self.svc.name, wanted, self.apply).await?;
        self.read().await?;
        let is_enabled = block_in_place(|| init_script::is_enabled(&self.svc.name));
        match is_enabled == Some(wanted == Startup::Enabled) {
            true => Ok(()),
            false => {
                let why = "`systemctl` ended without an error, and the links of the run levels are the same";
                Err(self.failure(attempted).because(why))
            }
        }
    }

    /// Why the startup cannot be changed to this, if it cannot.
    fn cannot(&self, wanted: Startup) -> Option<String> {
        let is = self.unit.file_state.as_str();
        let why = match (wanted, is) {
            (Startup::Enabled, "static" | "indirect") => {
                "its unit file has no `WantedBy`, `RequiredBy` or `Alias` in a section `[Install]`; what wants it starts it"
            }
            (Startup::Enabled, "generated") => "systemd generates it from something else at each start",
            (Startup::Enabled, "transient") => {
                "it was made while the machine runs, and is gone at its next start"
            }
            (Startup::Enabled, is) if is.starts_with("masked") => {
                "it is masked; `masked => false` takes the mask away"
            }
            (Startup::Disabled, "generated") => {
                "systemd generates it from something else at each start; `masked => true` keeps it from starting"
            }
            _ => return None,
        };
        Some(format!("it is `{is}`: {why}"))
    }

    /// Brings it to run or not. Whether something was wrong.
    async fn state(&mut self) -> Result<bool, Failure> {
        match *self.svc.state {
            None => Ok(false),
            Some(State::Running) => self.start().await,
            Some(State::Stopped) => self.stop().await,
        }
    }

    async fn start(&mut self) -> Result<bool, Failure> {
        self.let_others_finish().await?;
        if self.unit.active_state.is_running() {
            return Ok(false);
        }
        if self.unit.is_masked() && self.svc.masked != Some(false) && self.apply.may_repair() {
            let why = "it is masked; `masked => false` takes the mask away";
            return Err(self.failure("start").because(why));
        }
        if !self.apply.drift("state", self.unit.running(), "running") {
            return Ok(true);
        }
        // A service that has ended is forgotten at once, and why it has with it, unless somebody holds it. That is not possible everywhere.
        let is_held = self.manager.hold(&self.name).await.is_ok();
        let started = self.job("StartUnit", "start").await;
        let lives = match &started {
            Ok(()) => self.must_live("start").await,
            Err(_) => Ok(()),
        };
        if is_held {
            let _ = self.manager.release(&self.name).await;
        }
        started.and(lives)?;
        Ok(true)
    }

    /// A service that was just started must still be there a moment later: for systemd, most of them have started as soon as there is a process.
    async fn must_live(&mut self, attempted: &'static str) -> Result<(), Failure> {
        self.read().await?;
        if self.unit.active_state.is_running() {
            tokio::time::sleep(UNTIL_IT_LIVES).await;
            self.read().await?;
        }
        let why = match self.unit.active_state {
            ActiveState::Failed => "it failed at once; `systemctl status` and the journal say why",
            ActiveState::Activating if self.unit.sub_state == "auto-restart" => {
                "it ended at once, and systemd starts it again and again; `systemctl status` and the journal say why"
            }
            ActiveState::Inactive if !self.unit.conditions_held => {
                "a condition of its unit file does not hold"
            }
            ActiveState::Inactive if !self.may_end().await? => {
                "its command ended at once, without a failure; one that is to end needs `Type=oneshot`"
            }
            _ => return Ok(()),
        };
        Err(self.failure(attempted).because(why))
    }

    /// Whether it is a service that does something and ends.
    async fn may_end(&self) -> Result<bool, Failure> {
        let sort = self.manager.service_type(&self.name).await;
        let sort = sort.attempting("ask systemd about", &self.name)?;
        Ok(sort == "oneshot")
    }

    /// Waits for what was asked for already: a start that somebody else has begun is not begun again. In the middle of a restart
    /// a service does not run, and has a job.
    async fn let_others_finish(&mut self) -> Result<(), Failure> {
        if self.unit.active_state.is_running() || !self.apply.may_repair() {
            return Ok(());
        }
        let job = self.manager.job(&self.unit).await;
        if let Some(job) = job.attempting("ask systemd about the job of", &self.name)? {
            // However that ends, how the unit is then counts.
            let _ = unit_control::wait(job, &self.name, "wait for", self.apply).await?;
            self.read().await?;
        }
        Ok(())
    }

    async fn stop(&mut self) -> Result<bool, Failure> {
        if !self.unit.active_state.is_running() {
            return Ok(false);
        }
        if !self.apply.drift("state", self.unit.running(), "stopped") {
            return Ok(true);
        }
        self.job("StopUnit", "stop").await?;
        self.read().await?;
        Ok(true)
    }

    /// Serves a notification.
    async fn refresh(&mut self) -> Result<(), Failure> {
        let on_refresh = self.svc.on_refresh.unwrap_or(OnRefresh::ReloadOrRestart);
        let (method, attempted, word) = match on_refresh {
            OnRefresh::ReloadOrRestart => ("ReloadOrTryRestartUnit", "reload", "reload-or-restart"),
            OnRefresh::Reload => ("ReloadUnit", "reload", "reload"),
            OnRefresh::Restart => ("RestartUnit", "restart", "restart"),
            OnRefresh::TryRestart => ("TryRestartUnit", "restart", "try-restart"),
        };
        let senders = self.apply.notified_by().iter().map(ToString::to_string);
        let because = format!("notified by {}", senders.collect::<Vec<_>>().join(", "));
        let effect = match on_refresh {
            OnRefresh::ReloadOrRestart | OnRefresh::Reload => Effect::Reload,
            OnRefresh::Restart | OnRefresh::TryRestart => Effect::Restart,
        };
        if !self.apply.act(effect, "reload", because, word) {
            return Ok(());
        }
        let starts = on_refresh == OnRefresh::Restart;
        if !self.unit.active_state.is_running() && !starts {
            self.apply
                .log(Level::Debug, "does not run, so nothing is to be reloaded");
            return Ok(());
        }
        self.job(method, attempted).await?;
        self.must_live(attempted).await
    }

    async fn mask(&mut self) -> Result<(), Failure> {
        if self.svc.masked != Some(true) || self.unit.file_state == "masked" {
            return Ok(());
        }
        let is = match self.unit.file_state.as_str() {
            "masked-runtime" => "masked-runtime",
            _ => "not masked",
        };
        if self.apply.drift("masked", is, "masked") {
            let changes = self.manager.mask(&self.name).await;
            self.files_changed(changes, "mask").await?;
        }
        Ok(())
    }

    /// Links to unit files were changed: the manager reads them, and says how the unit is now.
    async fn files_changed(
        &mut self,
        changes: Result<UnitFileChanges, setpoint_host::bus::BusError>,
        attempted: &'static str,
    ) -> Result<(), Failure> {
        let changes = changes.attempting(attempted, &self.name)?;
        if !changes.is_empty() {
            unit_control::reload(self.manager).await?;
            self.read().await?;
        }
        Ok(())
    }

    /// Has the manager do a job, and waits for its end.
    async fn job(&mut self, method: &str, attempted: &'static str) -> Result<(), Failure> {
        unit_control::read_new_files(self.manager, &self.name, &self.unit).await?;
        unit_control::job(self.manager, &self.name, method, attempted, self.apply).await
    }
}
