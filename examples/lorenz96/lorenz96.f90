! SPDX-License-Identifier: Apache-2.0
!
! A coupled program: the model of Lorenz (1996) with two scales runs under MPI, and trains a closure for its slow scale
! at each of its steps. Beside it a forecast has the slow scale alone, with the closure in place of the fast scale; each
! 100 steps it begins anew from the full model, and its error is printed.
!
!   mtc compile closure.mlir -o closure.mtp --batch 36 --shards 4
!   mpif90 -O2 -ffp-contract=off $PREFIX/include/mtrun.f90 lorenz96.f90 -o lorenz96 -lmtrun
!   mpirun -np 3 ./lorenz96 closure.mtp closure.safetensors
!
! The ring of slow variables is divided as the plan's shards are: a process trains on the points that it computes, and
! only partial sums of gradients go from process to process. The file has the same bits on 1 to 4 processes.
program lorenz96
  use, intrinsic :: iso_c_binding, only: c_float, c_int64_t
  use mpi
  use mtrun
  implicit none
  integer, parameter :: slow = 36, fast = 10, steps = 2000, window = 100, real64 = kind(1d0)
  real(real64), parameter :: forcing = 20, h = 1, b = 10, c = 10, dt = 0.005d0
  type(mtrun_plan) :: plan
  type(mtrun_session) :: session
  type(mtrun_options) :: options
  real(c_float), target :: features(3, slow) = 0, targets(1, slow) = 0, closure(1, slow) = 0
  real(real64), allocatable :: x(:), y(:), forecast(:), nothing(:)
  real(real64) :: sums(2), all_sums(2)
  character(256) :: path
  integer(c_int64_t) :: first, count
  integer :: rank, ranks, provided, ierr, step, k

  call MPI_Init_thread(MPI_THREAD_SERIALIZED, provided, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, path)
  call plan%load(trim(path))
  call mtrun_options_of_launcher(options)
  options%devices = "cpu:1"
  call session%create(plan, options)

  ! The points of the ring that belong to this process: from first + 1, count of them.
  call session%own_rows(first, count)

  allocate (x(count), y(fast * count), forecast(count), nothing(0))
  do k = 1, count
    x(k) = 10 * sin(0.7d0 * real(first + k, real64)**2)
    y(fast * (k - 1) + 1:fast * k) = [(0.1d0 * cos(1.3d0 * real(fast * (first + k) + step, real64)**2), step = 1, fast)]
  end do
  do step = 1, 200 ! to the attractor
    call advance(x, y, nothing)
  end do

  sums = 0
  do step = 1, steps
    if (mod(step, window) == 1) forecast = x
    call collect(forecast)
    call session%predict([mtrun_tensor(features), mtrun_tensor(closure)])
    call advance(forecast, nothing, real(closure(1, first + 1:first + count), real64))

    call collect(x)
    do k = 1, count
      targets(1, first + k) = real(-h * c / b * sum(y(fast * (k - 1) + 1:fast * k)), c_float)
    end do
    call session%train_step([mtrun_tensor(features), mtrun_tensor(targets)])
    call advance(x, y, nothing)

    if (mod(step, window) == 0 .and. (step == window .or. step == steps)) then
      sums = [sum((forecast - x)**2), real(count, real64)]
      call MPI_Reduce(sums, all_sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
      if (rank == 0) print "(a, i0, a, f6.3, a, f6.2)", "step ", step, ": loss ", session%metric("loss"), &
        ", error of the forecast ", sqrt(all_sums(1) / all_sums(2))
    end if
  end do
  if (rank == 0) then
    call get_command_argument(2, path)
    call session%save(trim(path))
  end if
  call session%free()
  call plan%free()
  call MPI_Finalize(ierr)

contains

  ! The features of the points of this process: itself and its neighbours. MTC reads no others.
  subroutine collect(state)
    real(real64), intent(in) :: state(:)
    real(real64) :: ring(-1:count + 1)
    integer :: i
    call with_neighbours(state, 2, 1, ring)
    do i = 1, count
      features(:, first + i) = real(ring(i - 1:i + 1) / 10, c_float)
    end do
  end subroutine collect

  ! A state with `left` and `right` values of the neighbouring processes of the ring.
  subroutine with_neighbours(state, left, right, ring)
    real(real64), intent(in) :: state(:)
    integer, intent(in) :: left, right
    real(real64), intent(out) :: ring(1 - left:)
    integer :: n, before, after
    n = size(state)
    before = mod(rank + ranks - 1, ranks)
    after = mod(rank + 1, ranks)
    ring(1:n) = state
    call MPI_Sendrecv(state(n - left + 1:), left, MPI_DOUBLE_PRECISION, after, 0, ring(1 - left:0), left, &
                      MPI_DOUBLE_PRECISION, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Sendrecv(state(:right), right, MPI_DOUBLE_PRECISION, before, 1, ring(n + 1:), right, &
                      MPI_DOUBLE_PRECISION, after, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  end subroutine with_neighbours

  ! The tendencies of both scales; `effect` stands for the fast one where there is none.
  subroutine tendencies(slows, fasts, effect, d_slow, d_fast)
    real(real64), intent(in) :: slows(:), fasts(:), effect(:)
    real(real64), intent(out) :: d_slow(:), d_fast(:)
    real(real64) :: r(-1:size(slows) + 1), f(0:size(fasts) + 2)
    integer :: i
    call with_neighbours(slows, 2, 1, r)
    do i = 1, size(slows)
      d_slow(i) = -r(i - 1) * (r(i - 2) - r(i + 1)) - r(i) + forcing
      if (size(fasts) == 0) d_slow(i) = d_slow(i) + effect(i)
    end do
    if (size(fasts) == 0) return
    call with_neighbours(fasts, 1, 2, f)
    do i = 1, size(fasts)
      d_fast(i) = -c * b * f(i + 1) * (f(i + 2) - f(i - 1)) - c * f(i) + h * c / b * r((i - 1) / fast + 1)
    end do
    do i = 1, size(slows)
      d_slow(i) = d_slow(i) - h * c / b * sum(fasts(fast * (i - 1) + 1:fast * i))
    end do
  end subroutine tendencies

  ! A step of the method of Runge and Kutta, of fourth order.
  subroutine advance(slows, fasts, effect)
    real(real64), intent(inout) :: slows(:), fasts(:)
    real(real64), intent(in) :: effect(:)
    real(real64), parameter :: at(4) = [0d0, 0.5d0, 0.5d0, 1d0], weight(4) = [1d0, 2d0, 2d0, 1d0] / 6
    real(real64) :: ks(size(slows)), kf(size(fasts)), s(size(slows)), f(size(fasts))
    integer :: stage
    ks = 0
    kf = 0
    s = 0
    f = 0
    do stage = 1, 4
      call tendencies(slows + dt * at(stage) * ks, fasts + dt * at(stage) * kf, effect, ks, kf)
      s = s + weight(stage) * ks
      f = f + weight(stage) * kf
    end do
    slows = slows + dt * s
    fasts = fasts + dt * f
  end subroutine advance
end program lorenz96
