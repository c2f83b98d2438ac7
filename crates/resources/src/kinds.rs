//! The table of kinds.

mod archive;
mod augeas;
mod block;
mod cron;
mod deploy_tar;
mod download;
mod exec;
mod exit;
mod file;
mod firewalld;
mod fwattr;
mod fwupd_device;
mod fwupd_remote;
mod fwupd_system;
mod gate;
mod git;
mod group;
mod gsettings;
mod gzip;
mod hostname;
mod hosts;
mod ini;
mod json_edit;
mod kv;
mod line;
mod mount;
mod msg;
mod net;
mod noop;
mod nspawn;
mod panic;
mod password;
mod pkg;
mod pkg_repository;
mod print;
mod remote;
mod schedule;
mod settled;
mod ssh_authorized_key;
mod substitute;
mod sudoers;
mod svc;
mod sysctl;
mod tar;
mod test;
mod timer;
mod timezone;
mod user;
mod value;
mod wait;

use setpoint_engine::KindSpec;

/// Every kind that texts can name, in the order of the reference documentation.
pub static KINDS: &[&KindSpec] = &[
    &file::File::SPEC,
    &exec::Exec::SPEC,
    &svc::Svc::SPEC,
    &pkg::Pkg::SPEC,
    &pkg_repository::PkgRepository::SPEC,
    &cron::Cron::SPEC,
    &mount::Mount::SPEC,
    &nspawn::Nspawn::SPEC,
    &hostname::Hostname::SPEC,
    &timezone::Timezone::SPEC,
    &net::Net::SPEC,
    &firewalld::Firewalld::SPEC,
    &user::User::SPEC,
    &group::Group::SPEC,
    &sysctl::Sysctl::SPEC,
    &line::Line::SPEC,
    &block::Block::SPEC,
    &substitute::Substitute::SPEC,
    &ini::Ini::SPEC,
    &hosts::Hosts::SPEC,
    &sudoers::Sudoers::SPEC,
    &ssh_authorized_key::SshAuthorizedKey::SPEC,
    &json_edit::JsonEdit::SPEC,
    &augeas::Augeas::SPEC,
    &download::Download::SPEC,
    &archive::Archive::SPEC,
    &git::Git::SPEC,
    &wait::Wait::SPEC,
    &gzip::Gzip::SPEC,
    &tar::Tar::SPEC,
    &deploy_tar::DeployTar::SPEC,
    &gsettings::Gsettings::SPEC,
    &fwattr::Fwattr::SPEC,
    &fwupd_device::FwupdDevice::SPEC,
    &fwupd_remote::FwupdRemote::SPEC,
    &fwupd_system::FwupdSystem::SPEC,
    &password::Password::SPEC,
    &kv::Kv::SPEC,
    &schedule::Schedule::SPEC,
    &remote::Remote::SPEC,
    &msg::Msg::SPEC,
    &print::Print::SPEC,
    &noop::Noop::SPEC,
    &timer::Timer::SPEC,
    &value::ValueResource::SPEC,
    &test::Test::SPEC,
    &exit::Exit::SPEC,
    &panic::Panic::SPEC,
];

/// Kinds that no text can name: what a model exports for machines that wait for each other.
pub static INTERNAL_KINDS: &[&KindSpec] = &[&gate::Gate::SPEC, &settled::TOLD];
