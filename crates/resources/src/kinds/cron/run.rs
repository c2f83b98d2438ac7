//! A run: unit files, then what systemd makes of them.
//!
//! After the files were changed, or if systemd has not read them since somebody else changed them, it reads them and the timer begins anew; otherwise it would go on with the old
//! schedule. What shall be absent goes the other way round: stopped and disabled while systemd still knows it, then removed.

use setpoint_engine::{Apply, Attempting, Failure};
use setpoint_host::systemd::{ActiveState, ServiceManager, Unit, UnitName};
use tokio::task::block_in_place;

use super::{Cron, GENERATED};
use crate::presence::Presence;
use crate::unit_control::{self, Startup};
use crate::unit_files;
use crate::written_file::WrittenFile;

struct Run<'a, 'b> {
    cron: &'a Cron,
    manager: &'a ServiceManager,
    timer: UnitName,
    /// As it was read last.
    unit: Unit,
    apply: &'a mut Apply<'b>,
}

/// Brings a timer into its state.
pub(super) async fn run(cron: &Cron, manager: &ServiceManager, apply: &mut Apply<'_>) -> Result<(), Failure> {
    let timer = cron.timer().attempting("use the name", &cron.name)?;
    let no_home = || {
        let why = "our own user has no home directory";
        Failure::new("find the unit file of").on(&cron.name).because(why)
    };
    let file = WrittenFile::look(cron.timer_file().ok_or_else(no_home)?)?;
    let service = WrittenFile::look(cron.service_file().ok_or_else(no_home)?)?;
    let unit = read(manager, &timer).await?;
    let run = Run {
        cron,
        manager,
        timer,
        unit,
        apply,
    };
    match cron.state {
        Presence::Exists => run.exists(&file, &service).await,
        Presence::Absent => run.absent(&file, &service).await,
    }
}

async fn read(manager: &ServiceManager, timer: &UnitName) -> Result<Unit, Failure> {
    let unit = manager.unit(timer, true).await;
    unit.attempting("ask systemd about", timer)
}

impl Run<'_, '_> {
    async fn exists(mut self, file: &WrittenFile, service: &WrittenFile) -> Result<(), Failure> {
        if (file.is_mask() || self.unit.is_masked()) && self.apply.may_repair() {
            let why = format!(
                "it is masked; `systemctl unmask {}` takes the mask away",
                self.timer
            );
            return Err(self.failure("start").because(why));
        }
        if self.cron.command.is_some() && service.is_of_others(GENERATED) {
            let why =
                "it is there, and Setpoint has not written it; remove it, or give the timer another name";
            return Err(Failure::new("write").on(service.path()).because(why));
        }
        let mut is_changed = file.hold("content", &self.cron.timer_text(), self.apply)?;
        let is_service_changed = match &self.cron.command {
            Some(command) => service.hold("command", &self.cron.service_text(command), self.apply)?,
            // One that an earlier program has left.
            None => service.has(GENERATED) && service.remove("command", self.apply)?,
        };
        // The timer's schedule is the same, but systemd has to read it.
        if is_service_changed && !is_changed && self.apply.may_repair() {
            unit_control::reload(self.manager).await?;
            self.read().await?;
        }
        if !is_changed && self.has_unread_files()? {
            is_changed = true;
            // One that does not run is found wrong for that, below.
            if self.unit.active_state.is_running() {
                let is = format!("{}, with files that systemd has not read", self.unit.running());
                let _ = self.apply.drift("state", is, "active");
            }
        }
        if is_changed && self.apply.may_repair() {
            unit_control::reload(self.manager).await?;
            self.read().await?;
        }
        self.startup(*self.cron.startup).await?;
        let is_running = self.unit.active_state.is_running();
        if !is_running && !self.apply.drift("state", self.is(), "active") {
            return Ok(());
        }
        if (is_changed && self.apply.may_repair()) || !is_running {
            self.restart().await?;
        }
        Ok(())
    }

    /// Whether there is something of the timer that systemd has not read.
    fn has_unread_files(&self) -> Result<bool, Failure> {
        if self.unit.needs_reload {
            return Ok(true);
        }
        let directories = self.cron.drop_in_directories(&self.timer);
        let unread = block_in_place(|| unit_files::has_unread(&directories, &self.unit.drop_ins));
        unread.attempting("look for the drop-ins of", &self.timer)
    }

    async fn restart(&mut self) -> Result<(), Failure> {
        let attempted = "start";
        let started = self.job("RestartUnit", attempted).await;
        self.read().await?;
        let is_dead = self.unit.active_state == ActiveState::Failed;
        if started.is_ok() && !is_dead {
            return Ok(());
        }
        if self.unit.load_state == "bad-setting" || !self.unit.load_error.is_empty() {
            return Err(self.failure(attempted).because(self.unit.load_error.clone()));
        }
        let target = self.cron.starts();
        let name = UnitName::new(target.clone()).attempting("use the name", &target)?;
        let starts = self.manager.unit(&name, false).await;
        let starts = starts.attempting("ask systemd about", &name)?;
        if !starts.is_found() {
            let why = format!("systemd finds no unit `{target}`, which it would start; `command` makes one");
            return Err(self.failure(attempted).because(why));
        }
        started?;
        let why = "it failed at once; `systemctl status` and the journal say why";
        Err(self.failure(attempted).because(why))
    }

    async fn absent(mut self, file: &WrittenFile, service: &WrittenFile) -> Result<(), Failure> {
        if !matches!(
            self.unit.active_state,
            ActiveState::Inactive | ActiveState::Failed
        ) && self.apply.remove(self.unit.running())
        {
            self.job("StopUnit", "stop").await?;
        }
        if !self.unit.file_state.is_empty() && !file.is_mask() {
            self.startup(Some(Startup::Disabled)).await?;
        }
        // A mask keeps the timer from running, as is wanted, and is somebody's decision.
        let mut is_changed = !file.is_mask() && file.remove("content", self.apply)?;
        if service.has(GENERATED) {
            is_changed |= service.remove("command", self.apply)?;
        }
        if is_changed && self.apply.may_repair() {
            unit_control::reload(self.manager).await?;
            let forgotten = self.manager.reset_failed(&self.timer).await;
            forgotten.attempting("forget the failure of", &self.timer)?;
        }
        Ok(())
    }

    async fn startup(&mut self, wanted: Option<Startup>) -> Result<(), Failure> {
        let Some(wanted) = wanted else { return Ok(()) };
        let Some(is) = wanted.unless_right(&self.unit) else {
            return Ok(());
        };
        let (word, attempted) = wanted.word_and_verb();
        if !self.apply.drift("startup", is.clone(), word) {
            return Ok(());
        }
        let changes = match wanted {
            Startup::Enabled => self.manager.enable(&self.timer).await,
            Startup::Disabled => self.manager.disable(&self.timer, is.ends_with("-runtime")).await,
        };
        if !changes.attempting(attempted, &self.timer)?.is_empty() {
            unit_control::reload(self.manager).await?;
        }
        self.read().await?;
        match wanted.unless_right(&self.unit) {
            None => Ok(()),
            Some(is) => {
                let why = format!("systemd says that it is `{is}` all the same");
                Err(self.failure(attempted).because(why))
            }
        }
    }

    /// How it runs, in the words of systemd.
    fn is(&self) -> String {
        match self.unit.is_found() {
            true => self.unit.running(),
            false => "not found".to_owned(),
        }
    }

    async fn read(&mut self) -> Result<(), Failure> {
        self.unit = read(self.manager, &self.timer).await?;
        Ok(())
    }

    async fn job(&mut self, method: &str, attempted: &'static str) -> Result<(), Failure> {
        unit_control::read_new_files(self.manager, &self.timer, &self.unit).await?;
        unit_control::job(self.manager, &self.timer, method, attempted, self.apply).await
    }

    fn failure(&self, attempted: &'static str) -> Failure {
        Failure::new(attempted).on(&self.timer)
    }
}
