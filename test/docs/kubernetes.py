# SPDX-License-Identifier: Apache-2.0
"""kubernetes.py FILE...: every field of jobs for Kubernetes is one of its kind, and what mtrun needs is there.

FIELDS are the fields of MPIJob v2beta1, and of TrainingRuntime and TrainJob v1alpha1 with the parts of JobSet and Pod
that the files use. None: anything."""
import itertools
import shlex
import sys

import yaml

CONTAINER = {"name": None, "image": None, "command": None, "args": None, "env": None,
             "securityContext": {"runAsUser": None}, "readinessProbe": {"tcpSocket": {"port": None}},
             "resources": {"limits": None}, "volumeMounts": [{"name": None, "mountPath": None}]}
POD = {"spec": {"restartPolicy": None, "containers": [CONTAINER],
                "volumes": [{"name": None, "persistentVolumeClaim": {"claimName": None},
                             "emptyDir": {"medium": None, "sizeLimit": None}}]}}
REPLICA = {"replicas": None, "restartPolicy": None, "template": POD}
TOP = {"apiVersion": None, "kind": None, "metadata": {"name": None}}
FIELDS = {
    ("kubeflow.org/v2beta1", "MPIJob"): {**TOP, "spec": {
        "slotsPerWorker": None, "runLauncherAsWorker": None, "mpiImplementation": None, "sshAuthMountPath": None,
        "launcherCreationPolicy": None,
        "runPolicy": {"cleanPodPolicy": None, "ttlSecondsAfterFinished": None, "activeDeadlineSeconds": None,
                      "backoffLimit": None, "schedulingPolicy": None, "suspend": None, "managedBy": None},
        "mpiReplicaSpecs": {"Launcher": REPLICA, "Worker": REPLICA}}},
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): {**TOP, "spec": {
        "mlPolicy": {"numNodes": None, "mpi": {"numProcPerNode": None, "mpiImplementation": None,
                                               "sshAuthMountPath": None, "runLauncherAsNode": None}},
        "template": {"spec": {
            "network": {"publishNotReadyAddresses": None}, "failurePolicy": {"maxRestarts": None},
            "successPolicy": {"operator": None, "targetReplicatedJobs": None},
            "replicatedJobs": [{"name": None, "template": {
                "metadata": {"labels": None}, "spec": {"template": POD}}}]}}}},
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): {**TOP, "spec": {
        "runtimeRef": {"apiGroup": None, "kind": None, "name": None},
        "trainer": {"image": None, "numNodes": None, "numProcPerNode": None, "command": None, "args": None,
                    "env": None, "resourcesPerNode": {"limits": None}}}},
}


def unknown(value, fields, where):
    """The paths of fields that are not of the kind."""
    if fields is None:
        return []
    if isinstance(fields, list):
        return sum((unknown(each, fields[0], f"{where}[{i}]") for i, each in enumerate(value)), [])
    found = [f"{where}.{name}" for name in value if name not in fields]
    return found + sum((unknown(value[name], fields[name], f"{where}.{name}") for name in value if name in fields), [])


def commands(value):
    """The command lines of all containers and trainers."""
    if isinstance(value, dict):
        own = [[*value.get("command", []), *value.get("args", [])]] if "args" in value else []
        return own + sum((commands(each) for each in value.values()), [])
    return sum(map(commands, value), []) if isinstance(value, list) else []


problems, lines = [], []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        documents = list(yaml.safe_load_all(file))
    for document in documents:
        fields = FIELDS.get((document.get("apiVersion"), document.get("kind")))
        problems += [f"{path}: expected a known kind, found {document.get('kind')}"] if fields is None else [
            f"{path}: expected a field of {document['kind']}, found {each}" for each in unknown(document, fields, "")]
    text = str(documents)
    if not any(word in text for word in ("OnFailure", "torch-distributed")):
        problems.append(f"{path}: expected a restart policy, found none")
    if "mpirun" in text and "'emptyDir': {'medium': 'Memory'" not in text:
        problems.append(f"{path}: expected an emptyDir in memory, found none")
    lines += [command for command in itertools.chain.from_iterable(map(commands, documents)) if "mtrun" in command]
# The commands that mtrun gets, which the caller tries.
print(*(shlex.join(line[line.index("mtrun"):]) for line in lines), sep="\n")
sys.exit("\n".join(problems) or 0)
