// docker buildx bake                     both architectures, with an SBOM and provenance as attestations
// PYTHON=python:3.13-slim-trixie@sha256:... TAG=registry.example.com/kubenexus:0.1.0 docker buildx bake --push

variable "PYTHON" {
  default = "python:3.13-slim-trixie"
}

variable "TAG" {
  default = "kubenexus:0.1.0"
}

group "default" {
  targets = ["kubenexus"]
}

target "kubenexus" {
  context    = "."
  dockerfile = "Dockerfile"
  args       = { PYTHON = PYTHON }
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = [TAG]
  attest     = ["type=sbom", "type=provenance,mode=max"]
}
