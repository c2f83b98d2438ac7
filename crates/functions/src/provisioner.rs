//! `embedded/provisioner`: the options of the `provisioner` command, each as a constant.

use setpoint_value::{CallContext, CallError, Module, Type, Value, function};

macro_rules! options {
    ($($static:ident $name:ident $signature:literal $default:expr, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            #[function(environment, raw, signature = $signature)]
            fn $name(context: &CallContext<'_>, _: &[Value]) -> Result<Value, CallError> {
                read(context, stringify!($name), $default)
            }
        )*

        pub(crate) static MODULE: Module = Module::new(
            "embedded/provisioner",
            "The options of the `provisioner` command.",
            &[$(&$static),*],
        );
    };
}

/// The value of an option that was not given.
#[derive(Clone, Copy)]
enum Default {
    /// There is none, and asking is an error.
    Missing,
    Text(&'static str),
    Nothing,
    Bool(bool),
}

options! {
    CHECK check "func() bool" Default::Bool(false), "Whether to stop after checking.";
    CLI_ARCH cli_arch "func() str" Default::Text("x86_64"), "The architecture to install.";
    CLI_BIOS cli_bios "func() bool" Default::Bool(false), "Whether to boot in the legacy way.";
    CLI_BMC_URI cli_bmc_uri "func() str" Default::Text(""), "The management controller that powers the machine on.";
    CLI_DISTRO cli_distro "func() str" Default::Text("fedora"), "The distribution to install.";
    CLI_DNS cli_dns "func() []str" Default::Nothing, "The name servers to offer.";
    CLI_FIREWALLD cli_firewalld "func() bool" Default::Bool(true), "Whether to open the firewall.";
    CLI_FLAVOUR cli_flavour "func() str" Default::Text("Workstation"), "The flavour to install.";
    CLI_HANDOFF_CODE cli_handoff_code "func() str" Default::Text(""), "The code that the new machine runs.";
    CLI_HANDOFF_EXEC cli_handoff_exec "func() str" Default::Text(""), "The command that the new machine runs.";
    CLI_HANDOFF_HOSTNAME cli_handoff_hostname "func() str" Default::Text(""), "The new machine's name.";
    CLI_HANDOFF_MODULE_PATH cli_handoff_module_path "func() str" Default::Text(""), "Where the new machine finds modules.";
    CLI_INTERFACE cli_interface "func() str" Default::Missing, "The network interface to serve on.";
    CLI_IP cli_ip "func() str" Default::Text("192.168.42.13/24"), "The address of the machine to install.";
    CLI_LUKS cli_luks "func() bool" Default::Bool(true), "Whether to encrypt the disk.";
    CLI_MAC cli_mac "func() str" Default::Text(""), "The hardware address of the machine to install; empty for any.";
    CLI_MIRROR cli_mirror "func() str" Default::Text(""), "The mirror to install from.";
    CLI_NETWORK cli_network "func() str" Default::Text("192.168.42.0/24"), "The network to serve; empty for none.";
    CLI_PACKAGES cli_packages "func() []str" Default::Nothing, "Further packages to install.";
    CLI_PART cli_part "func() str" Default::Text("plain"), "How to partition the disk.";
    CLI_PASSWORD cli_password "func() str" Default::Missing, "The root password as a SHA-512 crypt text.";
    CLI_PREFIX cli_prefix "func() str" Default::Missing, "The directory for downloads.";
    CLI_ROUTER cli_router "func() str" Default::Text("192.168.42.1/24"), "The own address.";
    CLI_RSYNC cli_rsync "func() str" Default::Text(""), "The mirror to copy from.";
    CLI_VERSION cli_version "func() str" Default::Missing, "The version to install.";
}

fn read(context: &CallContext<'_>, name: &str, default: Default) -> Result<Value, CallError> {
    let Some(value) = context.capabilities.provisioner_option(name) else {
        return match default {
            Default::Text(text) => Ok(Value::str(text)),
            Default::Nothing => Ok(Value::list(Type::Str, [])),
            Default::Bool(value) => Ok(Value::Bool(value)),
            Default::Missing => Err(CallError::fatal(format!(
                "func `embedded/provisioner.{name}()` has nil value"
            ))),
        };
    };
    if value.ty() == *context.result {
        Ok(value)
    } else {
        Err(CallError::fatal(format!(
            "the option is of type {}, not {}",
            value.ty(),
            context.result
        )))
    }
}
