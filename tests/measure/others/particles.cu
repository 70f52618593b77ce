// inspect --grid 2 --block 64 --arg f32[128,6]=random:26 --arg f32=0.01
// An array of structures: neighbouring threads are 24 bytes apart.
struct Particle { float x, y, z, vx, vy, vz; };
__global__ void step(Particle* p, float dt) {
    Particle& q = p[blockIdx.x * blockDim.x + threadIdx.x];
    q.x += dt * q.vx;
    q.y += dt * q.vy;
    q.z += dt * q.vz;
}
