"""Functions of the module, and a handler, which models of Setpoint do without."""

import re
from typing import Optional

from inmanta.agent.handler import CRUDHandler, provider
from inmanta.plugins import PluginException, plugin
from inmanta.resources import PurgeableResource, resource

from . import names


@resource("web::Site", agent="host.name", id_attribute="name")
class Site(PurgeableResource):
    fields = ("name", "port")


@provider("web::Site", name="site")
class SiteHandler(CRUDHandler):
    def read_resource(self, ctx, resource):
        raise NotImplementedError()


@plugin
def is_label(text: "string") -> "bool":
    return re.fullmatch("[a-z][a-z0-9-]*", text) is not None


@plugin("summary")
def summary_of_sites(sites: "web::Site[]", separator: Optional[str] = None) -> str:
    if not sites:
        raise PluginException("there are no sites")
    lines = sorted("%s: %d" % (site.name, len(site.configuration.splitlines())) for site in sites)
    return (separator or ", ").join(lines)


@plugin
def punycode(name: "string") -> "string":
    return names.encoded(name)
