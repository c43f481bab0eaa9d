"""Pods of charts that people install, with the labels that charts set: all of them are services.

Each line has the labels' style, the owner, the name, the component (- for none) and the image. `k` is the style of
`app.kubernetes.io/*`, `h` the older one of `app`, `chart`, `release` and `heritage`, `a` a bare `app`.
"""

from kubenexus.api.core import Pod
from tests.api.classification.builders import an_owned_pod

OWNERS = {"r": "ReplicaSet", "s": "StatefulSet", "d": "DaemonSet"}
LINES = """
    k r nginx - docker.io/bitnami/nginx:1.27.4
    k r ingress-nginx controller registry.k8s.io/ingress-nginx/controller:v1.12.1
    k r ingress-nginx default-backend registry.k8s.io/defaultbackend-amd64:1.5
    k r traefik - docker.io/traefik:v3.3.4
    k r haproxy - haproxytech/haproxy-alpine:3.1.5
    k r kong app kong:3.9
    k r envoy - envoyproxy/envoy:v1.33.0
    k r emissary-ingress - emissaryingress/emissary:3.9.1
    k r contour contour ghcr.io/projectcontour/contour:v1.30.2
    k d contour envoy docker.io/envoyproxy/envoy:v1.31.5
    k r apisix - apache/apisix:3.11.0-debian
    k r gloo gateway-proxy quay.io/solo-io/gloo-envoy-wrapper:1.18.9
    a r istiod - docker.io/istio/pilot:1.25.0
    a r istio-ingressgateway - docker.io/istio/proxyv2:1.25.0
    k r linkerd-identity - cr.l5d.io/linkerd/controller:edge-25.3.1
    k r linkerd-destination - cr.l5d.io/linkerd/controller:edge-25.3.1
    k s postgresql primary docker.io/bitnami/postgresql:17.4.0
    k s postgresql read docker.io/bitnami/postgresql:17.4.0
    k s postgresql-ha postgresql docker.io/bitnami/postgresql-repmgr:17.4.0
    k r postgresql-ha pgpool docker.io/bitnami/pgpool:4.6.0
    k r cloudnative-pg - ghcr.io/cloudnative-pg/cloudnative-pg:1.25.1
    k r postgres-operator - ghcr.io/zalando/postgres-operator:v1.14.0
    k r pgadmin4 - docker.io/dpage/pgadmin4:9.1
    k s mysql primary docker.io/bitnami/mysql:8.4.4
    k s mysql secondary docker.io/bitnami/mysql:8.4.4
    k s mariadb primary docker.io/bitnami/mariadb:11.4.5
    k s mariadb-galera - docker.io/bitnami/mariadb-galera:11.4.5
    k s mongodb mongodb docker.io/bitnami/mongodb:8.0.5
    k s mongodb arbiter docker.io/bitnami/mongodb:8.0.5
    k s mongodb-sharded shardsvr docker.io/bitnami/mongodb-sharded:8.0.5
    k s redis master docker.io/bitnami/redis:7.4.2
    k s redis replica docker.io/bitnami/redis:7.4.2
    k s redis-cluster - docker.io/bitnami/redis-cluster:7.4.2
    h s redis-ha - redis:7.2.7-alpine
    k s valkey replica docker.io/bitnami/valkey:8.0.2
    k r memcached - docker.io/bitnami/memcached:1.6.37
    k s kafka controller-eligible docker.io/bitnami/kafka:3.9.0
    k s kafka broker docker.io/bitnami/kafka:3.9.0
    k r strimzi - quay.io/strimzi/operator:0.45.0
    k s kafka kafka quay.io/strimzi/kafka:0.45.0-kafka-3.9.0
    k r schema-registry schema-registry docker.io/bitnami/schema-registry:7.9.0
    k s zookeeper zookeeper docker.io/bitnami/zookeeper:3.9.3
    k s rabbitmq rabbitmq docker.io/bitnami/rabbitmq:4.0.7
    k s nats nats nats:2.10.26-alpine
    k r nats-box - natsio/nats-box:0.16.0
    h s pulsar broker apachepulsar/pulsar-all:4.0.3
    h s pulsar bookie apachepulsar/pulsar-all:4.0.3
    k s redpanda redpanda-statefulset docker.redpanda.com/redpandadata/redpanda:v24.3.6
    k s elasticsearch master docker.io/bitnami/elasticsearch:8.17.3
    k s elasticsearch data docker.io/bitnami/elasticsearch:8.17.3
    h s elasticsearch-master - docker.elastic.co/elasticsearch/elasticsearch:8.5.1
    h r kibana - docker.elastic.co/kibana/kibana:8.5.1
    h d filebeat - docker.elastic.co/beats/filebeat:8.5.1
    h s logstash - docker.elastic.co/logstash/logstash:8.5.1
    k s opensearch opensearch-cluster-master opensearchproject/opensearch:2.19.1
    k r opensearch-dashboards dashboards opensearchproject/opensearch-dashboards:2.19.1
    k s solr solr docker.io/bitnami/solr:9.8.0
    k s cassandra - docker.io/bitnami/cassandra:5.0.3
    k s scylla scylla scylladb/scylla:6.2.3
    k s clickhouse clickhouse docker.io/bitnami/clickhouse:25.2.1
    k s cockroachdb cockroachdb cockroachdb/cockroach:v25.1.0
    k s tikv tikv pingcap/tikv:v8.5.1
    k s tidb tidb pingcap/tidb:v8.5.1
    k s yugabyte yb-tserver yugabytedb/yugabyte:2024.2.1.0-b185
    k s influxdb - influxdb:2.7.11-alpine
    k s timescaledb - timescale/timescaledb-ha:pg17
    k s neo4j - neo4j:5.26.2
    k s arangodb - arangodb/arangodb:3.12.4
    k s etcd - docker.io/bitnami/etcd:3.5.19
    k s minio minio docker.io/bitnami/minio:2025.2.28
    h s minio - quay.io/minio/minio:RELEASE.2024-12-18T13-15-44Z
    k r rook-ceph-operator - docker.io/rook/ceph:v1.16.4
    a r rook-ceph-mon - quay.io/ceph/ceph:v19.2.1
    a r rook-ceph-osd - quay.io/ceph/ceph:v19.2.1
    k d longhorn - longhornio/longhorn-manager:v1.8.1
    k r longhorn - longhornio/longhorn-ui:v1.8.1
    k r openebs localpv-provisioner openebs/provisioner-localpv:4.2.0
    k r nfs-subdir-external-provisioner - registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2
    k r velero - velero/velero:v1.15.2
    k d velero node-agent velero/velero:v1.15.2
    k s prometheus server quay.io/prometheus/prometheus:v3.2.1
    k s prometheus - quay.io/prometheus/prometheus:v3.2.1
    k s alertmanager - quay.io/prometheus/alertmanager:v0.28.1
    k d prometheus-node-exporter metrics quay.io/prometheus/node-exporter:v1.9.0
    k r kube-state-metrics metrics registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.15.0
    k r prometheus-pushgateway - quay.io/prometheus/pushgateway:v1.11.0
    k r kube-prometheus-stack-prometheus-operator - quay.io/prometheus-operator/prometheus-operator:v0.80.1
    k r prometheus-adapter metrics registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0
    k r grafana - docker.io/grafana/grafana:11.5.2
    k s loki single-binary docker.io/grafana/loki:3.4.2
    k s loki write docker.io/grafana/loki:3.4.2
    k r loki gateway docker.io/nginxinc/nginx-unprivileged:1.27-alpine
    k d promtail - docker.io/grafana/promtail:3.0.0
    k d alloy - docker.io/grafana/alloy:v1.7.1
    k s tempo - docker.io/grafana/tempo:2.7.1
    k s mimir ingester docker.io/grafana/mimir:2.15.0
    k r mimir distributor docker.io/grafana/mimir:2.15.0
    k r thanos query docker.io/bitnami/thanos:0.37.2
    k s thanos storegateway docker.io/bitnami/thanos:0.37.2
    k s victoria-metrics-single server victoriametrics/victoria-metrics:v1.113.0
    k r jaeger all-in-one docker.io/jaegertracing/all-in-one:1.66.0
    k r opentelemetry-collector standalone-collector otel/opentelemetry-collector-k8s:0.121.0
    k d fluent-bit - cr.fluentbit.io/fluent/fluent-bit:3.2.8
    k d fluentd - docker.io/bitnami/fluentd:1.18.0
    k d vector Agent timberio/vector:0.45.0-distroless-libc
    h d datadog - gcr.io/datadoghq/agent:7.63.2
    k r metrics-server - registry.k8s.io/metrics-server/metrics-server:v0.7.2
    k r cert-manager controller quay.io/jetstack/cert-manager-controller:v1.17.1
    k r webhook webhook quay.io/jetstack/cert-manager-webhook:v1.17.1
    k r cainjector cainjector quay.io/jetstack/cert-manager-cainjector:v1.17.1
    k r external-dns - registry.k8s.io/external-dns/external-dns:v0.16.1
    k r external-secrets - oci.external-secrets.io/external-secrets/external-secrets:v0.14.4
    k r sealed-secrets - docker.io/bitnami/sealed-secrets-controller:0.28.0
    k s vault server hashicorp/vault:1.19.0
    k r vault-agent-injector webhook hashicorp/vault-k8s:1.6.2
    h s consul server hashicorp/consul:1.20.4
    k s keycloak keycloak docker.io/bitnami/keycloak:26.1.3
    k r dex - ghcr.io/dexidp/dex:v2.42.0
    k r oauth2-proxy authentication-proxy quay.io/oauth2-proxy/oauth2-proxy:v7.8.1
    k r authentik server ghcr.io/goauthentik/server:2025.2.1
    k r authentik worker ghcr.io/goauthentik/server:2025.2.1
    k r identity-server - example/identity-server:4.1
    k r identity-provider identity registry.example.com/platform/identity-provider:7
    k r pomerium proxy pomerium/pomerium:v0.28.0
    k r openldap - osixia/openldap:1.5.0
    k r zitadel start ghcr.io/zitadel/zitadel:v2.71.0
    k r ory-kratos - oryd/kratos:v1.3.1
    k r argocd-server server quay.io/argoproj/argocd:v2.14.4
    k s argocd-application-controller application-controller quay.io/argoproj/argocd:v2.14.4
    k r argocd-repo-server repo-server quay.io/argoproj/argocd:v2.14.4
    k r argocd-applicationset-controller applicationset-controller quay.io/argoproj/argocd:v2.14.4
    k r argo-workflows-workflow-controller workflow-controller quay.io/argoproj/workflow-controller:v3.6.5
    k r argo-workflows-server server quay.io/argoproj/argocli:v3.6.5
    k r argo-rollouts rollouts-controller quay.io/argoproj/argo-rollouts:v1.8.1
    a r source-controller - ghcr.io/fluxcd/source-controller:v1.5.0
    a r helm-controller - ghcr.io/fluxcd/helm-controller:v1.2.0
    k s jenkins jenkins-controller docker.io/jenkins/jenkins:2.492.2-jdk17
    h r gitlab-webservice - registry.gitlab.com/gitlab-org/build/cng/gitlab-webservice-ee:v17.9.1
    h r gitlab-sidekiq - registry.gitlab.com/gitlab-org/build/cng/gitlab-sidekiq-ee:v17.9.1
    h s gitlab-gitaly - registry.gitlab.com/gitlab-org/build/cng/gitaly:v17.9.1
    k r gitlab - registry.gitlab.com/gitlab-org/build/cng/gitlab-shell:v14.40.0
    h r gitlab-runner - registry.gitlab.com/gitlab-org/gitlab-runner:alpine-v17.9.0
    k r gitea - docker.gitea.com/gitea:1.23.4-rootless
    k r forgejo - code.forgejo.org/forgejo/forgejo:10.0.1
    k r gha-runner-scale-set-controller - ghcr.io/actions/gha-runner-scale-set-controller:0.10.1
    h s sonarqube - sonarqube:2025.1-community
    k r nexus-repository-manager - sonatype/nexus3:3.78.1
    h s artifactory artifactory releases-docker.jfrog.io/jfrog/artifactory-pro:7.104.7
    h r harbor core goharbor/harbor-core:v2.12.2
    h s harbor registry goharbor/registry-photon:v2.12.2
    h r harbor jobservice goharbor/harbor-jobservice:v2.12.2
    k r chartmuseum - ghcr.io/helm/chartmuseum:v0.16.2
    h r docker-registry - registry:2.8.3
    k s nextcloud app nextcloud:30.0.6-apache
    k r wordpress - docker.io/bitnami/wordpress:6.7.2
    k r ghost - docker.io/bitnami/ghost:5.110.1
    k r drupal - docker.io/bitnami/drupal:11.1.3
    k r joomla - docker.io/bitnami/joomla:5.2.4
    k r mediawiki - docker.io/bitnami/mediawiki:1.43.0
    k r moodle - docker.io/bitnami/moodle:4.5.2
    k r odoo - docker.io/bitnami/odoo:18.0.20250305
    k r magento - docker.io/bitnamilegacy/magento:2.4.6
    k r matomo - docker.io/bitnami/matomo:5.2.2
    k r mastodon web docker.io/bitnami/mastodon:4.3.4
    k r mastodon streaming docker.io/bitnami/mastodon:4.3.4
    k r discourse - docker.io/bitnami/discourse:3.4.1
    k r mattermost-team-edition - mattermost/mattermost-team-edition:10.5.1
    k r rocketchat - rocket.chat:7.4.0
    k r synapse synapse matrixdotorg/synapse:v1.125.0
    k r outline - outlinewiki/outline:0.82.0
    k s confluence - atlassian/confluence:9.2.1
    k s jira - atlassian/jira-software:10.3.3
    k r redmine - docker.io/bitnami/redmine:6.0.3
    k r wikijs - requarks/wiki:2.5
    k r vaultwarden - vaultwarden/server:1.33.2
    k r peertube - chocobozzz/peertube:v7.0.1
    k r jellyfin - docker.io/jellyfin/jellyfin:10.10.6
    k r video-service - registry.example.com/media/video-service:2.3
    k r video-transcoder worker registry.example.com/media/video-transcoder:2.3
    k r frigate - ghcr.io/blakeblackshear/frigate:0.15.0
    k s plex-media-server - plexinc/pms-docker:1.41.4
    k r immich-server - ghcr.io/immich-app/immich-server:v1.129.0
    k r home-assistant - ghcr.io/home-assistant/home-assistant:2025.3.1
    k r label-studio app heartexlabs/label-studio:1.16.0
    k r label-sync - registry.k8s.io/label-sync:latest
    k r superset - apache/superset:4.1.1
    k r metabase - metabase/metabase:v0.53.5
    k r airflow scheduler apache/airflow:2.10.5
    k r airflow webserver apache/airflow:2.10.5
    k r mlflow - burakince/mlflow:2.20.3
    k r n8n - n8nio/n8n:1.82.1
    k r trino coordinator trinodb/trino:471
    k s flink jobmanager flink:1.20.1
    k r kuberay-operator kuberay-operator quay.io/kuberay/operator:v1.4.2
    k r spark-operator controller ghcr.io/kubeflow/spark-operator/controller:2.1.0
    k r notebook-controller - ghcr.io/kubeflow/kubeflow/notebook-controller:v1.10.0
    k r knative-serving controller gcr.io/knative-releases/knative.dev/serving/cmd/controller:v1.17.0
    k r knative-serving activator gcr.io/knative-releases/knative.dev/serving/cmd/activator:v1.17.0
    k r kserve-controller-manager - kserve/kserve-controller:v0.15.0
    k s replicator - quay.io/mittwald/kubernetes-replicator:v2.11.0
    k r availability-checker available registry.example.com/sre/availability-checker:1
    k r cluster-autoscaler - registry.k8s.io/autoscaling/cluster-autoscaler:v1.32.0
    k r karpenter - public.ecr.aws/karpenter/controller:1.3.1
    k r keda-operator - ghcr.io/kedacore/keda:2.16.1
    k r kyverno admission-controller ghcr.io/kyverno/kyverno:v1.13.4
    k r gatekeeper - openpolicyagent/gatekeeper:v3.18.2
    k d cilium-agent - quay.io/cilium/cilium:v1.17.1
    a d calico-node - docker.io/calico/node:v3.29.2
    a d kube-proxy - registry.k8s.io/kube-proxy:v1.37.0
    k r metallb controller quay.io/metallb/controller:v0.14.9
    k d nvidia-device-plugin - nvcr.io/nvidia/k8s-device-plugin:v0.17.0
    k d node-feature-discovery worker registry.k8s.io/nfd/node-feature-discovery:v0.17.2
    k r gpu-operator gpu-operator nvcr.io/nvidia/gpu-operator:v24.9.2
    k r kueue controller registry.k8s.io/kueue/kueue:v0.10.2
    k r rancher - rancher/rancher:v2.10.3
    k r kubernetes-dashboard web docker.io/kubernetesui/dashboard-web:1.6.2
    k r headlamp - ghcr.io/headlamp-k8s/headlamp:v0.29.1
    k r goldilocks controller us-docker.pkg.dev/fairwinds-ops/oss/goldilocks:v4.13.0
    k r temporal frontend temporalio/server:1.27.1
    k r unleash - unleashorg/unleash-server:6.7.2
    k r sentry-web - getsentry/sentry:25.2.0
    k r posthog web posthog/posthog:release-1.43.1
    k r oncall engine grafana/oncall:v1.14.0
    k r backstage backstage ghcr.io/backstage/backstage:1.36.1
    k r cluster-api-provider-aws controller registry.k8s.io/cluster-api-aws/cluster-api-aws-controller:v2.8.1
    k s qdrant qdrant docker.io/qdrant/qdrant:v1.13.4
    k s weaviate - cr.weaviate.io/semitechnologies/weaviate:1.29.0
    k r milvus proxy milvusdb/milvus:v2.5.5
"""


def labels_of(style: str, name: str, component: str) -> dict[str, str]:
    if style == "a":
        return {"app": name, "pod-template-hash": "6b7f8c9d5"}
    if style == "h":
        old = {"app": name, "chart": f"{name}-1.2.3", "release": "prod", "heritage": "Helm"}
        return old | ({"component": component} if component != "-" else {})
    new = {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/instance": f"prod-{name}",
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/version": "1.2.3",
        "helm.sh/chart": f"{name}-1.2.3",
        "pod-template-hash": "6b7f8c9d5",
    }
    return new | ({"app.kubernetes.io/component": component} if component != "-" else {})


def ordinary_pod(line: str) -> Pod:
    style, owner, name, component, image = line.split()
    return an_owned_pod(
        OWNERS[owner],
        "apps/v1",
        labels=labels_of(style, name, component),
        annotations={"checksum/config": "5f1c" * 16, "prometheus.io/scrape": "true"},
        image=image,
    )


ORDINARY = tuple(line.strip() for line in LINES.strip().splitlines())
