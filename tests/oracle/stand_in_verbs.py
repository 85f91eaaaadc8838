"""Verbs of programs that are recorded instead of run, read by option tables of our own.

The tables are independent of the classifiers: which global options take a value, and which verbs only read.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class VerbTable(NamedTuple):
    """Global options with a value, and the verbs that only read; two words where the first is a group."""

    valued: frozenset[str]
    reads: frozenset[str]


def _table(valued: str, reads: str) -> VerbTable:
    return VerbTable(frozenset(valued.split()), frozenset(reads.replace("\n", ",").replace(", ", ",").split(",")))


_DOCKER_READS = """ps,images,inspect,logs,info,version,top,stats,port,diff,history,search,events,help,image ls,image list,image inspect,
image history,container ls,container list,container ps,container inspect,container logs,container top,container stats,container port,
container diff,volume ls,volume list,volume inspect,network ls,network list,network inspect,system df,system info,system events,
context ls,context list,context inspect,context show,compose ps,compose logs,compose config,compose images,compose top,compose ls,compose version,
compose port,compose events,compose stats,compose volumes,manifest inspect,buildx ls,buildx du,buildx inspect,buildx version,
buildx imagetools,service ls,service ps,service logs,service inspect,node ls,node ps,node inspect,stack ls,stack ps,stack services,
stack config,plugin ls,plugin inspect,trust inspect,secret ls,config ls,config inspect,secret inspect,checkpoint ls,swarm ca"""
_AWS_READS = (
    "describe",
    "list",
    "get",
    "head",
    "lookup",
    "search",
    "filter",
    "batch-get",
    "select",
    "query",
    "scan",
    "view",
    "ls",
    "help",
)
VERBS: Mapping[str, VerbTable] = {
    "docker": _table("--config -c --context -H --host -l --log-level --tlscacert --tlscert --tlskey", _DOCKER_READS),
    "kubectl": _table(
        "-n --namespace --context --cluster --user --kubeconfig -s --server --token --as --as-group --as-uid --cache-dir "
        "--certificate-authority --client-certificate --client-key --profile --profile-output --request-timeout "
        "--tls-server-name -v --v --vmodule --username --password",
        """get,describe,logs,top,version,explain,api-resources,api-versions,cluster-info,config view,config get-contexts,
config current-context,config get-clusters,config get-users,auth can-i,auth whoami,diff,events,rollout status,rollout history,
wait,plugin list,completion,options,kustomize,help,certificate,top pods,top nodes""",
    ),
    "helm": _table(
        "--kube-context --kubeconfig -n --namespace --registry-config --repository-cache --repository-config "
        "--kube-apiserver --kube-as-user --kube-as-group --kube-ca-file --kube-token --kube-tls-server-name --burst-limit --qps",
        """list,ls,status,history,hist,get,search,show,inspect,version,env,lint,template,verify,repo list,repo ls,plugin list,plugin ls,
dependency list,dependency ls,dep list,dep ls,help,completion""",
    ),
    "systemctl": _table(
        "-t --type --state -p --property -P -H --host -M --machine -n --lines -o --output -s --signal --kill-whom --kill-who "
        "--root --image --job-mode --what --preset-mode --timestamp --legend --message --drop-in",
        """status,show,cat,list-units,list-unit-files,list-sockets,list-timers,list-dependencies,list-jobs,list-machines,list-paths,
list-automounts,is-active,is-enabled,is-failed,is-system-running,get-default,help,show-environment,whoami""",
    ),
    "npm": _table(
        "--prefix -C --cache --registry --loglevel -w --workspace --userconfig --globalconfig --tag --depth --otp --scope --omit "
        "--include --location -L --before --access --script-shell --node-options",
        """ls,list,ll,la,view,v,info,show,outdated,search,s,se,find,audit,config get,config list,config ls,c get,c list,get,prefix,root,bin,help,
why,explain,ping,whoami,fund,doctor,pkg get,query,dist-tag ls,owner ls,access list,org ls,team ls,token list,profile get,diff,
sbom,stars,completion,help-search,audit signatures,config,version,docs,repo,bugs""",
    ),
    "pip": _table(
        "--python --log --proxy --retries --timeout --exists-action --trusted-host --cert --client-cert --cache-dir --keyring-provider",
        "list,show,freeze,check,search,index versions,config list,config get,config debug,cache dir,cache info,cache list,inspect,help,debug,hash,completion",
    ),
    "terraform": _table(
        "",
        "show,output,validate,version,providers,graph,state list,state show,state pull,workspace list,workspace show,fmt,plan,console,"
        "metadata functions,modules,test,get,query",
    ),
}
_VALUED_AWS = frozenset(
    "--profile --region --output --query --endpoint-url --color --ca-bundle --cli-read-timeout --cli-connect-timeout".split()
)


def deed(arguments: Sequence[str]) -> str:
    """Return the verb of a recorded program if it does more than read, or an empty string."""
    if not arguments:
        return ""
    name = arguments[0].rpartition("/")[2]
    if name == "aws":
        words = operands(arguments[1:], _VALUED_AWS)
        return "" if len(words) < 2 or words[1].startswith(_AWS_READS) else " ".join(words[:2])
    table = VERBS.get({"pip3": "pip", "docker-compose": "docker"}.get(name, name))
    if table is None or {"--help", "-h", "--version"} & {*arguments}:
        return ""
    words = operands(arguments[1:], table.valued)
    if not words or words[0] in table.reads or " ".join(words[:2]) in table.reads:
        return ""
    return " ".join(words[:2])


def operands(words: Sequence[str], valued: frozenset[str]) -> list[str]:
    """Return the words that are neither options nor their values."""
    rest: list[str] = []
    pending = iter(words)
    for word in pending:
        if word in valued:
            next(pending, None)
        elif not word.startswith("-"):
            rest.append(word)
    return rest
